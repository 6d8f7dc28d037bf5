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
)  # fmt: skip
from goodput_app.dashboard.data import marts

ICON = (  # in the page itself: a named icon would be fetched from the internet
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><g fill="none" stroke-width="7">'
    '<circle cx="16" cy="16" r="11" stroke="#e0ac3a"/>'
    '<path d="M16 5a11 11 0 1 1-11 11" stroke="#159a5c"/></g></svg>'
)
SIDEBAR_PX = 210
LOOK = """<style>
[data-testid="stMainBlockContainer"] { padding: 3rem 2rem 3rem 2rem; }
[data-testid="stMainBlockContainer"] h1 { font-size: 1.6rem; padding: 0 0 0.3rem 0; }
@media (min-width: 641px) { /* no bar on top of the page, where the side bar is open */
  [data-testid="stMainBlockContainer"] { padding-top: 1.1rem; }
  [data-testid="stHeader"] { background: transparent; pointer-events: none; }
  [data-testid="stHeader"] * { pointer-events: auto; }
  .stApp:has([data-testid="stExpandSidebarButton"]) [data-testid="stMainBlockContainer"]
    { padding-top: 3rem; }
}
.st-key-scope, .st-key-scope [data-testid="stVerticalBlock"] { gap: 0.3rem; }
[data-testid="stCaptionContainer"] { color: inherit; opacity: CAPTION_OPACITY; }
[data-testid="stSidebarHeader"] { height: 1.5rem; }
@media (max-width: 640px) { /* a phone: two side by side, below the button of the side bar */
  [data-testid="stMainBlockContainer"] { padding: 4rem 1rem 3rem 1rem; }
  .st-key-scope [data-testid="stHorizontalBlock"]:has(> [data-testid="stColumn"]),
  [class*="st-key-tiles"] [data-testid="stHorizontalBlock"],
  [class*="-tiles"] [data-testid="stHorizontalBlock"] { flex-wrap: wrap; flex-direction: row; }
  .st-key-scope [data-testid="stColumn"],
  [class*="st-key-tiles"] [data-testid="stColumn"],
  [class*="-tiles"] [data-testid="stColumn"] { flex: 1 1 40%; min-width: 40%; width: auto; }
}
@media (max-width: 640px) { /* a long value goes on in a second line instead of being cut */
  [data-testid="stMetricValue"] :is(div, p) { white-space: normal; overflow-wrap: anywhere; }
}
/* rows of tables whose last columns matter stand one below the other; findings have most columns */
@media (max-width: 640px) {
  [class*="st-key-table_of_"] { display: none; }
}
@media (min-width: 641px) {
  [class*="st-key-cards_of_"]:not(.st-key-cards_of_finding) { display: none; }
}
@media (max-width: 1250px) {
  .st-key-table_of_finding { display: none; }
}
@media (min-width: 1251px) {
  .st-key-cards_of_finding { display: none; }
}
[class*="st-key-awaiting_"] { display: none; }
[data-testid="stMetricLabel"] p { white-space: normal; }
/* contrast: white on a dark blue in both schemes, code in the colour of the text */
[class*="stBaseButton-primary"], [data-testid^="stBaseButton-primary"] {
  background-color: #146c94; border-color: #146c94; color: #ffffff;
}
[data-testid="stCode"] code, [data-testid="stCode"] code span { color: inherit !important; }
:is([data-testid="stMarkdownContainer"], [data-testid="stCaptionContainer"]) code
  { font-size: 0.92em !important; }
kbd { opacity: CAPTION_OPACITY !important; }
[data-testid="stCode"] code span { color: inherit !important; } /* its hues are too faint */
.st-key-query_sql textarea { font-family: "Source Code Pro", monospace; }
@media (min-width: 641px) and (max-width: 1250px) { /* the time range has a line of its own */
  .st-key-scope [data-testid="stHorizontalBlock"] { flex-wrap: wrap; }
  .st-key-scope [data-testid="stColumn"] { flex: 1 1 22%; min-width: 22%; }
  .st-key-scope [data-testid="stColumn"]:last-child { flex: 1 1 100%; }
}
@media (max-width: 1250px) { /* charts and tables that stand side by side have too little room */
  [data-testid="stHorizontalBlock"]:has(> [data-testid="stColumn"] WIDE) { flex-wrap: wrap; }
  [data-testid="stHorizontalBlock"]:has(> [data-testid="stColumn"] WIDE) > [data-testid="stColumn"]
    { flex: 1 1 100%; min-width: 100%; }
}
@media (max-width: 640px) { /* filters are folded, below the time range */
  .st-key-scope_folded [data-testid="stColumn"]:not(:last-child) { display: none; }
  .st-key-scope_folded_status { display: none; }
  .st-key-scope [data-testid="stColumn"]:last-child { order: -1; flex: 1 1 100%; }
}
@media (min-width: 641px) {
  .st-key-scope_more { display: none; }
}
@media (min-width: 641px) and (max-width: 1380px) {
  [class*="-tiles"] [data-testid="stHorizontalBlock"] { flex-wrap: wrap; }
  [class*="-tiles"] [data-testid="stColumn"] { flex: 1 1 30%; min-width: 30%; }
}
</style>"""

st.set_page_config(
    page_icon=ICON,
    layout="wide",
    initial_sidebar_state=SIDEBAR_PX,
)

WIDE = ':is([data-testid="stPlotlyChart"], [data-testid="stDataFrame"])'
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
ENERGY = _page("power_and_carbon.py", "Energy", "bolt")
DATA = _page("data_health.py", "Data", "fact_check")
EXPLORER = _page("metric_explorer.py", "Explorer", "query_stats")
QUERY = _page("sql_query.py", "Query", "terminal")
HELP = _page("documentation.py", "Help", "help")
GROUPS = {
    "Monitor": [OVERVIEW, FLEET, RUNS, NODES, HEALTH],
    "Optimize": [FINDINGS, WASTE, NETWORK, SERVING, COMPARE],
    "Cost": [COST, ENERGY],
    "Data": [DATA, EXPLORER, QUERY],
}
OF_NO_GROUP = (RUN, GPU, HELP)  # opened from other pages, or from below the menu
FLAGGED = (FLEET, RUNS, RUN, NODES, HEALTH, GPU, WASTE, NETWORK, SERVING)
OF_ONE = {RUN: "run", NODES: "node"}  # pages of one thing, and the filter that names it

pages = [*chain(*GROUPS.values()), *OF_NO_GROUP]
path = unquote(urlsplit(st.context.url or "").path).strip("/")
asked = path.removeprefix(st.get_option("server.baseUrlPath").strip("/")).rpartition("/")[2]
if asked not in ADDRESSES:  # in place of the framework's dialog
    pages.append(st.Page(states.no_such_page, title="Page not found", url_path=asked))
page = st.navigation(pages, position="hidden")
st.set_page_config(page_title=browser_title(page.title, st.query_params))
if wall.is_on():
    st.html(wall.LOOK)
else:
    with st.sidebar:
        st.title("Goodput", anchor=False)
        search.button()
        for group, members in GROUPS.items():
            st.caption(group)
            for member in members:
                params = scope_bar.carried(**{OF_ONE[page]: None} if page in OF_ONE else {})
                st.page_link(member, query_params=params, width="stretch")
        st.divider()
        wall.enter(scope_bar.go)
        st.page_link(HELP, query_params=scope_bar.carried(), width="stretch")
        account.show()

if page == HELP:  # about no time and no part of the fleet
    page.run()
    st.stop()
replay_bar.show()
states.refused_build()
view = None
with states.panel("", "marts.clusters"):
    view = scope_bar.show(scope_bar.COST_RANGE if page == COST else None)
    if view is None and not (page == DATA and marts.has_rows()):
        states.first_run()
if page in FLAGGED and view is not None:
    flag_parts.begin(view)
if page == DATA or (view is not None and not states.is_empty(view)):
    with states.whole_page():
        page.run()
if wall.is_on():
    wall.leave(scope_bar.go)
