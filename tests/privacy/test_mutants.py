"""Every deliberate fault is caught, by the test that is named for it.

These tests are part of the default run, where they pass without a fault.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from mutants import MUTANTS
from variants import some

TESTS = Path(__file__).parent.parent
TRUE_FIGURES = "privacy/test_true_figures.py::test_no_family_of_recipes_releases_a_true_figure"
BOTH_COUNTS = (
    "recipes/test_row_counts.py::test_both_counts_are_of_the_same_rows_and_weigh_by_their_inverse"
    "_variances"
)
GROUPED = (
    "learners/test_informative_tables.py::test_a_unit_changes_each_group_of_tables_by_its"
    "_sensitivity_at_most"
)
POINTS = "learners/test_tree_beside_sums.py::test_a_row_more_gives_every_mixture_0_to_its_most"
MEANS_NOISE = "learners/test_class_means_runs.py::test_the_noise_is_given_what_the_plan_says"
CAUGHT_BY = {
    "sensitivity_left_out": "privacy/test_proofs.py::test_the_bound_holds_on_the_worst_pairs_and_is"
    "_nearly_reached",
    "factor_2_left_out": "privacy/test_proofs.py::test_the_bound_holds_on_the_worst_pairs_and_is"
    "_nearly_reached",
    "empty_cells_without_noise": "privacy/test_noise.py::test_empty_cells_have_noise_too",
    "noise_used_twice": "privacy/test_noise.py::test_every_release_has_noise_of_its_own",
    "trees_by_position": "engine/coded_rows/test_engine_routing.py::test_equal_rows_share_a_tree",
    "debit_after": "training/test_training.py::test_the_whole_cost_is_debited_before_a_row_is_read",
    "unit_bound_ignored": "engine/coded_rows/test_engine_units.py"
    "::test_rows_per_unit_are_bounded_in_sql",
    "noisy_n_as_sensitivity": "splits/test_split_draws.py::test_sensitivities_are_those_that_were"
    "_proved[dpdf]",
    "domain_from_rows": "training/test_training.py::test_the_domain_does_not_rest_on_the_rows",
    "seed_unflagged": "training/test_training.py::test_a_seed_repeats_a_run_and_is_flagged"
    "_everywhere",
    "hessians_too_large": "learners/test_boosting_sums.py::test_no_row_of_two_classes_adds_more"
    "_than_the_sensitivity",
    "second_sweep_not_divided": "learners/test_boosting.py::test_the_second_sweep_divides_its"
    "_cost_among_the_attributes_that_it_has",
    "attributes_chosen_by_true_sums": "learners/test_boosting.py::test_nothing_but_released"
    "_figures_decides_about_attributes_and_votes",
    "gradients_of_several_classes_as_of_two": "learners/test_boosting_sums.py::test_a_row_more"
    "_changes_the_sums_by_no_more_than_the_sensitivity",
    "medians_at_double_cost": "learners/test_private_bins.py::test_a_median_costs_no_more_than_its"
    "_budget",
    "joint_noise_of_one_dimension": "privacy/test_joint_noise.py::test_each_dimension_has_the"
    "_deviation_that_is_claimed",
    "parts_of_a_row_left_out": "privacy/test_joint_noise.py::test_each_dimension_has_the_deviation"
    "_that_is_claimed",
    "macros_reach_the_rows": "engine/test_conformance.py::test_macros_of_the_database_change"
    "_nothing",
    "computed_columns_as_they_are": "privacy/test_one_row.py::test_a_computed_column_is_refused"
    "_before_the_debit_or_read_whatever_the_rows_are[all-parsed]",
    "identity_from_the_plan": "ledger/budget/test_changes_after_the_plan.py::test_a_comment"
    "_written_after_a_run_was_prepared_survives",
    "transaction_per_coding": "engine/test_conformance.py::test_duckdb_conforms",
    "shared_codes_of_other_rows": "engine/test_conformance.py::test_duckdb_conforms",
    "code_of_two": "learners/test_joint_tables.py::test_a_row_more_changes_each_block_of_its_class"
    "_by_one",
    "positions_noised_as_rows": f"{MEANS_NOISE}[9-1]",
    "squares_noised_as_positions": f"{MEANS_NOISE}[9-1]",
    "class_means_noised_as_one_figure": "learners/test_class_means_sensitivity.py::test_with_a"
    "_delta_sums_and_products_have_the_noise_of_their_l2_sensitivity",
    "windows_by_rows_outside_too": "learners/test_class_means_sensitivity.py::test_a_unit_more"
    "_changes_every_figure_by_its_sensitivity_at_most[1]",
    "windows_at_double_cost": f"{MEANS_NOISE}[0.2-1]",
    "strongest_attribute_as_of_one_row": "learners/test_class_means_runs.py::test_few_rows_and_a"
    "_tiny_budget_end_no_run[0-0.001]",
    "strongest_attribute_without_noise": "learners/test_informative_tables.py::test_the_number_of"
    "_attributes_follows_from_noisy_figures_alone",
    "tables_in_two_groups": f"{GROUPED}[1]",
    "grouped_rows_counted_twice": f"{GROUPED}[3]",
    "mixtures_rated_without_bound": f"{POINTS}[0-50.0-1-2]",
    "pairs_drawn_as_one_count": "learners/test_informative_tables.py::test_rows_of_a_unit_raise"
    "_each_utility_by_the_sensitivity_at_most",
    "rows_in_two_bins": "learners/test_candidate_bins.py::test_rows_of_a_unit_raise_each_utility"
    "_by_the_sensitivity_at_most[1]",
    "rare_classes_count_more": "learners/test_informative_tables.py::test_rows_of_a_unit_raise"
    "_each_utility_by_the_sensitivity_at_most",
    "points_of_some_rows_scaled_up": f"{POINTS}[1-0.1-2-2]",
    "rated_rows_by_their_place": f"{POINTS}[1-0.1-2-2]",
    "trees_removed_as_of_one_row": "recipes/test_published_pieces.py::test_a_tree_is_removed_at"
    "_the_cost_of_its_round_for_all_rows_of_a_unit[3]",
    "entries_drawn_one_way": "splits/test_split_draws.py::test_the_gain_of_an_entry_is_drawn_by"
    "_the_form_for_changes_in_both_directions[diffgen:ig]",
    "points_drawn_as_rows": "learners/test_tree_beside_sums.py::test_draws_have_the_sensitivity_of"
    "_their_utilities",
    "lost_cap_unnoticed": "ledger/test_account.py::test_a_cap_that_the_ledger_does_not"
    "_have_is_missed",
    "cap_not_anchored": "ledger/test_account.py::test_a_cap_is_kept_in_the_database_too",
    "rows_counted_without_the_bound": "privacy/test_true_figures.py::test_the_first_queries"
    "_count_no_more_rows_of_a_unit_than_the_bound",
    "second_count_at_double_cost": f"{BOTH_COUNTS}[auto-1-0]",
    "first_count_at_the_cost_of_both": f"{BOTH_COUNTS}[auto-1-0]",
    "rows_counted_as_of_one_row": f"{BOTH_COUNTS}[auto-3-0]",
    "second_count_of_noisy_rows": f"{BOTH_COUNTS}[auto-1-0]",
    "counts_weigh_the_same": f"{BOTH_COUNTS}[auto-1-0]",
    "counts_weigh_by_their_deviations": f"{BOTH_COUNTS}[auto-1-0]",
    "asked_counts_forgotten": "recipes/test_row_counts.py::test_counts_that_were_asked_stay_in"
    "_every_later_plan",
    "medians_charged_once": "learners/test_private_bins.py::test_each_attribute_that_is_cut_is"
    "_paid_for[boosted]",
    "medians_without_the_bound": "privacy/test_true_figures.py::test_the_first_queries"
    "_count_no_more_rows_of_a_unit_than_the_bound",
    "bounds_checked_as_of_one_attribute": "learners/test_private_bounds.py::test_a_unit_more"
    "_changes_the_figure_of_the_check_by_its_sensitivity",
    "joint_tables_with_true_totals": f"{TRUE_FIGURES}[joint-tables-0-20]",
    "joint_tables_print_the_number_of_rows": f"{TRUE_FIGURES}[joint-tables-0-20]",
    "true_gradients_printed": f"{TRUE_FIGURES}[boosted-1e-5-0.05]",
    "secure_bits_of_numpy": "privacy/test_bits.py::test_secure_bits_are_those_of_the_operating"
    "_system",
    "amounts_rounded_up": "privacy/test_amounts.py::test_an_epsilon_is_never_more_than_asked",
    "pure_costs_free_with_a_delta": "privacy/test_gaussian_dp.py::test_pure_costs_count_too",
    "draws_at_half_of_their_cost": "privacy/test_gaussian_dp.py::test_the_cost_of_a_draw_is_the"
    "_least_that_holds",
    "medians_by_permute_and_flip": "learners/test_boosting.py::test_the_mechanisms_are_given_what"
    "_the_plan_says[1-10000000000000]",
    "mu_of_twice_the_delta": "privacy/test_gaussian_dp.py::test_the_conversion_gives_the_known"
    "_figures",
    "gaussian_noise_on_the_integers": "privacy/test_noise.py::test_gaussian_noise_is_drawn_on_a"
    "_fine_grid_and_rounded",
    "gaussian_noise_on_the_grid_not_rounded_back": "privacy/test_noise.py::test_sums_get_the"
    "_gaussian_noise_that_is_claimed",
}


FEW = (
    "sensitivity_left_out",
    "factor_2_left_out",
    "empty_cells_without_noise",
    "debit_after",
    "unit_bound_ignored",
    "hessians_too_large",
)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="faults are put into copies of a process")
@some("mutants", [FEW, CAUGHT_BY], keep=1, ids=["few", "all"])
def test_every_fault_is_caught_by_the_test_that_is_named_for_it(
    mutants: Iterable[str],
) -> None:
    assert set(CAUGHT_BY) == set(MUTANTS)
    chosen = {mutant: CAUGHT_BY[mutant] for mutant in mutants}
    ran = subprocess.run(
        [sys.executable, "privacy/mutants.py", json.dumps(chosen)],
        cwd=TESTS,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    codes: dict[str, int] = json.loads(ran.stdout)
    assert codes == dict.fromkeys(chosen, 1), ran.stderr
