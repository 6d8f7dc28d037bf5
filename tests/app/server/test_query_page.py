"""The Query page: SQL on the views, its refusals in words, and queries that are saved."""

import pytest

from goodput_queries import audit, saved_queries

WINDOW = {"from": "2027-01-15T08:00:00Z", "to": "2027-01-16T14:00:00Z"}


@pytest.fixture
def page(visit, scraped_store):
    return visit(scraped_store, "sql_query", **WINDOW)


def ask(page, sql):
    page.text_area(key="query_sql").set_value(sql)
    return page.button(key="query_run").click().run()


def test_the_rows_of_a_query_are_shown_and_the_question_is_recorded(page, scraped_store):
    assert "Run a query to see its rows." in [c.value for c in page.caption]

    ask(page, "select team, count(*) as n from marts.runs group by team order by team")

    shown = page.dataframe[0].value
    own = scraped_store.read(
        "select team, count(*) as n from marts.runs group by team order by team"
    )
    assert [list(row) for row in shown.itertuples(index=False)] == [list(r) for r in own.rows()]
    assert audit.entries(scraped_store, 1)["action"].item() == "query"


def test_a_refused_query_says_why(page):
    ask(page, "select * from read_text('/etc/passwd')")

    assert [error.value for error in page.error] == ["The query was not answered."]
    assert "LocalFileSystem has been disabled" in page.code[0].value


def test_a_query_is_saved_and_chosen_again(page, scraped_store):
    page.text_area(key="query_sql").set_value("select 4711 as n")
    page.text_input(key="query_name").set_value("Mine")
    page.text_input(key="query_meaning").set_value("One number.")
    next(b for b in page.button if b.label == "Save").click().run()

    (own,) = [one for one in saved_queries.visible(scraped_store, None) if one.saved_by]
    assert (own.name, own.meaning, own.is_shared) == ("Mine", "One number.", False)
    page.selectbox(key="query_saved").set_value("most_wasted_runs").run()
    assert "marts.runs" in page.text_area(key="query_sql").value
    page.selectbox(key="query_saved").set_value(own.key).run()
    next(b for b in page.button if b.label == "Delete the chosen query").click().run()
    assert [one for one in saved_queries.visible(scraped_store, None) if one.saved_by] == []
    assert not page.exception
