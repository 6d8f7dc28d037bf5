"""Sending: mail, webhooks, chat, Alertmanager; retries, the outbox and work in the background."""
