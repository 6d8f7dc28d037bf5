"""`goodput report weekly`: the page Report as Markdown."""



from tests.app import two_weeks as world  # isort: skip


def test_it_prints_what_the_ledger_says_of_the_week(two_weeks):
    row = two_weeks.read("from marts.goodput_summary", scope=world.week_of(1)).row(0, named=True)
