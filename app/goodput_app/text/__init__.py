"""Text that the dashboard, commands and server share: amounts with units, headline, glossary."""
