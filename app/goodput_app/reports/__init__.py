"""The daily chargeback statement: who pays what for a day, and the files it is handed out in."""
