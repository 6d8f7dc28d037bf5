"""The panels of the Overview: status, ledger, first actions, what moved, teams."""
