"""The dashboard's list of pages."""

import streamlit as st

st.title("Goodput")
