"""The REST API under `/api/v1`: its handlers, its errors and its OpenAPI document."""
