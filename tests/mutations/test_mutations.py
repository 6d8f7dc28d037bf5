from tests.mutations.__main__ import ROOT, TARGETS
from tests.mutations.operators import mutations_of

SQL = """-- a < b and c
select case
    when a < 1 then 'x'
    when b then 'y'
end
"""


def test_each_change_is_one_and_comments_stay():
    found = list(mutations_of(SQL, is_sql=True))

    assert [mutation.line for mutation in found] == [3, 3]
    assert [m.text.split("\n")[2].strip() for m in found] == [
        "when a <= 1 then 'x'",
        "when b then 'y'",
    ]
    assert all(mutation.text.startswith("-- a < b and c\n") for mutation in found)


def test_docstrings_are_no_code():
    assert not list(mutations_of('"""Not a < b."""\n"""Not\na < b\n"""\n', is_sql=False))


def test_every_target_and_every_test_of_it_is_there():
    for name, tests in TARGETS.items():
        assert (ROOT / name).is_file()
        assert all((ROOT / test).is_file() for test in tests)
