"""Parameters of the API's paths, and the things that they are for."""

from __future__ import annotations

#: The ids that a parameter of a path is for, by how they begin. Base models are everyone's, so
#: their place is tried with the ids of everything else.
PARAMETERS = {
    "model": "",
    "decision": "dec_",
    "dataset": "ds_",
    "evaluation": "eval_",
    "family": "quillfeather",
    "job": "ftj_",
    "draft": "draft_",
    "source": "src_",
    "labeling_job": "lab_",
    "prompt_tuning_job": "pt_",
    "purchase": "pur_",
    "provider": "",
    "webhook": "wh_",
    "view": "view_",
    "delivery": "",
    "map": "map_",
    "alarm": "alarm_",
    "setup": "set_",
    "judge": "",
    "route": "",
    "named_decision": "quillfeather-desk",
    "version": "",
    "alias": "",
    "comparison": "ndc_",
    # Of the console, which no key reaches: tests/people has them.
    "key": "",
    "account": "",
    "member": "",
    "notice": "",
    "session": "",
    "passkey": "",
}
