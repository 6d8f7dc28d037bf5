"""What if: answers from the site's own ledger, with the formula of each number.

A scenario is a list of fields and a pure function from their values to answers. Values are Decimal
and come as spans: where the evidence leaves bounds the answer has bounds. What was measured bears
its source and window, what is assumed is called so, and what is missing is asked for.
"""
