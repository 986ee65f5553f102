"""Addresses of the pages that cross the apps, and of signing in and out."""

from django.urls import path

from controlplane.portal import approvals, factor_pages, home, spend, views

urlpatterns = [
    path("", home.home, name="home"),
    path("sign-in", views.SignIn.as_view(), name="login"),
    path("sign-in", views.SignIn.as_view(), name="account_login"),  # as allauth calls it
    path("sign-in/second-factor", views.SecondFactor.as_view(), name="mfa_authenticate"),
    path("second-factor", factor_pages.second_factor, name="second-factor"),
    path("second-factor/key", factor_pages.second_factor_key, name="second-factor-key"),
    path("second-factor/proof", factor_pages.second_factor_proof, name="second-factor-proof"),
    path("second-factor/codes", factor_pages.second_factor_codes, name="second-factor-codes"),
    path(
        "second-factor/<int:id>/remove",
        factor_pages.second_factor_remove,
        name="second-factor-remove",
    ),
    path("sign-in/<slug:provider>", views.provider_sign_in, name="provider-sign-in"),
    path("sign-in/<slug:provider>/back", views.provider_back, name="provider-back"),
    path("sign-in/<slug:provider>/answer", views.provider_answer, name="provider-answer"),
    path("sign-in/<slug:provider>/metadata", views.provider_metadata, name="provider-metadata"),
    path("sign-out", views.SignOut.as_view(), name="logout"),
    path("requests", approvals.request_list, name="request-list"),
    path("requests/decisions", approvals.requests_decide, name="requests-decide"),
    path("requests/<uuid:id>/decision", approvals.request_decide, name="request-decide"),
    path("requests/<uuid:id>/impact", approvals.request_impact, name="request-impact"),
    path("spend", spend.spend, name="spend"),
]
