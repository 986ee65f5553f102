// Posts at once what a provider's page had this browser post: from here, the session goes with it.

document.querySelector("[data-provider-answer]").submit();
