"""Taxonomies of two columns of Adult, in levels: groups of groups of categories."""

from __future__ import annotations

WORKCLASS = {
    "paid": {
        "private": ["Private"],
        "self": ["Self-emp-not-inc", "Self-emp-inc"],
        "government": ["Federal-gov", "Local-gov", "State-gov"],
    },
    "unpaid": ["Without-pay", "Never-worked"],
}
EDUCATION = {
    "no degree": {
        "elementary": ["Preschool", "1st-4th", "5th-6th", "7th-8th"],
        "secondary": ["9th", "10th", "11th", "12th", "HS-grad"],
    },
    "higher": {
        "college": ["Some-college", "Assoc-voc", "Assoc-acdm"],
        "university": ["Bachelors", "Masters", "Prof-school", "Doctorate"],
    },
}
TAXONOMIES = {"workclass": WORKCLASS, "education": EDUCATION}
