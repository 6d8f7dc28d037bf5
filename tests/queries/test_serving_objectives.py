"""Serving objectives in the database: builds keep those of the settings."""

from goodput_queries.serving_objectives import ServingObjective

KEPT = "select model, ttft_s, inter_token_s, e2e_s, target from state.serving_objectives"


def test_a_build_keeps_them_and_is_a_full_one_where_they_are_others(new_store):
    store = new_store()
    store.build()
    store.serving_objectives = (
        ServingObjective("llama-*", ttft_s=0.5, target=0.99),
        ServingObjective(inter_token_s=0.05),
    )

    assert store.build().height > 0, "nothing was loaded, but the ledger may depend on them"
    assert store.build().height == 0
    kept = [("llama-*", 0.5, None, None, 0.99), ("*", None, 0.05, None, None)]
    assert store.read(f"{KEPT} order by place").rows() == kept

    store.serving_objectives = None
    assert store.build().height == 0
    assert store.read(f"{KEPT} order by place").rows() == kept, "no setting says otherwise"

    store.serving_objectives = ()
    assert store.build().height > 0
    assert store.read(KEPT).height == 0
