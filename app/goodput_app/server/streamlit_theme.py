"""The look of the dashboard, as Streamlit takes it when the server starts."""

from typing import Any

THEME: dict[str, Any] = {
    "theme.baseFontSize": 15,
    "theme.baseRadius": "small",
    "theme.headingFontSizes": ["1.7rem", "1.25rem", "1.05rem"],
    "theme.headingFontWeights": [600, 600, 600],
    "theme.showWidgetBorder": True,
    "theme.metricValueFontSize": "1.55rem",
    "theme.metricValueFontWeight": 600,
    "theme.light.primaryColor": "#146c94",
    "theme.light.backgroundColor": "#ffffff",
    "theme.light.secondaryBackgroundColor": "#f2f4f7",
    "theme.light.textColor": "#1b2430",
    "theme.light.borderColor": "#d9dee5",
    "theme.light.dataframeBorderColor": "#e3e7ed",
    "theme.dark.primaryColor": "#4fb3e8",
    "theme.dark.backgroundColor": "#12171e",
    "theme.dark.secondaryBackgroundColor": "#1b222c",
    "theme.dark.textColor": "#e6eaf0",
    "theme.dark.borderColor": "#333d4a",
    "theme.dark.dataframeBorderColor": "#2b3440",
}
