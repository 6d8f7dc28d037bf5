"""The dashboard's list of pages, and what they share: look, navigation, scope bar."""

from itertools import chain
from pathlib import Path
from urllib.parse import unquote, urlsplit

import streamlit as st

from goodput_app.dashboard import theme
from goodput_app.dashboard.browser_title import browser_title
from goodput_app.dashboard.components import (
    account,
    flag_parts,
    replay_bar,
    scope_bar,
    search,
    states,
    wall,
)
from goodput_app.dashboard.components.rows import name_links
from goodput_app.dashboard.data import marts

ICON = (  # in the page itself: a named icon would be fetched from the internet
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><g fill="none" stroke-width="7">'
    '<circle cx="16" cy="16" r="11" stroke="#e0ac3a"/>'
    '<path d="M16 5a11 11 0 1 1-11 11" stroke="#159a5c"/></g></svg>'
)
SIDEBAR_PX = 210

st.set_page_config(
    page_icon=ICON,
    layout="wide",
    initial_sidebar_state=SIDEBAR_PX,
)

WIDE = ':is([data-testid="stPlotlyChart"], [data-testid="stDataFrame"], .gp-before)'
LOOK = theme.look("every_page")
st.html(LOOK.replace("CAPTION_OPACITY", f"{theme.CAPTION_OPACITY}").replace("WIDE", WIDE))

# No file is named like its URL: before the first `st.navigation` of a process (and in any AppTest)
# Streamlit looks for pages by their folder, and would run that file without this one.
PAGES = Path(__file__).parent / "pages"


ADDRESSES = {""}


def _page(file: str, title: str, icon: str, *, default: bool = False) -> st.Page:
    if not default:
        ADDRESSES.add(title.lower())
    name = f":material/{icon}:"
    return st.Page(PAGES / file, title=title, icon=name, url_path=title.lower(), default=default)


OVERVIEW = _page("fleet_overview.py", "Overview", "dashboard", default=True)
FLEET = _page("fleet_map.py", "Fleet", "grid_view")
RUNS = _page("all_runs.py", "Runs", "play_circle")
RUN = _page("one_run.py", "Run", "monitoring")
NODES = _page("nodes_and_one.py", "Nodes", "dns")
HEALTH = _page("node_health.py", "Health", "monitor_heart")
GPU = _page("one_gpu.py", "GPU", "memory")
FINDINGS = _page("open_findings.py", "Findings", "flag")
WASTE = _page("idle_gaps.py", "Waste", "savings")
NETWORK = _page("links_and_bandwidth.py", "Network", "lan")
SERVING = _page("model_serving.py", "Serving", "smart_toy")
COMPARE = _page("before_and_after.py", "Compare", "compare_arrows")
COST = _page("cost_statement.py", "Cost", "payments")
REPORT = _page("weekly_report.py", "Report", "summarize")
ENERGY = _page("power_and_carbon.py", "Energy", "bolt")
DATA = _page("data_health.py", "Data", "fact_check")
EXPLORER = _page("metric_explorer.py", "Explorer", "query_stats")
QUERY = _page("sql_query.py", "Query", "terminal")
HELP = _page("documentation.py", "Help", "help")
GROUPS = {
    "Monitor": [OVERVIEW, FLEET, RUNS, NODES, HEALTH],
    "Optimize": [FINDINGS, WASTE, NETWORK, SERVING, COMPARE],
    "Cost": [COST, REPORT, ENERGY],
    "Data": [DATA, EXPLORER, QUERY],
}
OF_NO_GROUP = (RUN, GPU, HELP)  # opened from other pages, or from below the menu
FLAGGED = (FLEET, RUNS, RUN, NODES, HEALTH, GPU, WASTE, NETWORK, SERVING)
# pages of one thing, and what a link of the menu leaves out: the filter that names it, the range
OF_ONE = {RUN: ("run",), NODES: ("node",), REPORT: ("from", "to")}

pages = [*chain(*GROUPS.values()), *OF_NO_GROUP]
path = unquote(urlsplit(st.context.url or "").path).strip("/")
asked = path.removeprefix(st.get_option("server.baseUrlPath").strip("/")).rpartition("/")[2]
if asked not in ADDRESSES:  # in place of the framework's dialog
    pages.append(st.Page(states.no_such_page, title="Page not found", url_path=asked))
page = st.navigation(pages, position="hidden")
name_links.go()
st.set_page_config(page_title=browser_title(page.title, st.query_params))
if wall.is_on():
    st.html(theme.look("wall_view"))
else:
    with st.sidebar:
        st.title("Goodput", anchor=False)
        search.button()
        for group, members in GROUPS.items():
            st.caption(group)
            for member in members:
                params = scope_bar.carried(**dict.fromkeys(OF_ONE.get(page, ())))
                st.page_link(member, query_params=params, width="stretch")
        st.divider()
        wall.enter(scope_bar.go)
        st.page_link(HELP, query_params=scope_bar.carried(), width="stretch")
        account.show()

if page == HELP:  # about no time and no part of the fleet
    page.run()
    st.stop()
with states.own_limits():
    replay_bar.show()
    states.refused_build()
    view = None
    with states.panel("", "marts.clusters"):
        view = scope_bar.show(
            scope_bar.COST_RANGE if page == COST else None, is_week=page == REPORT
        )
        if view is None and not (page == DATA and marts.has_rows()):
            states.first_run()
    if page in FLAGGED and view is not None:
        flag_parts.begin(view)
    if page == DATA or (view is not None and not states.is_empty(view, page.title)):
        with states.whole_page():
            page.run()
    if wall.is_on():
        wall.leave(scope_bar.go)
