"""Faults found in other projects, and the tests that would see them here."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

FAULTS: dict[str, tuple[str, ...]] = {
    "1 MSS matrix": ("terms/test_aggregate.py::test_rows_sum_to_one_with_one_nth_on_the_diagonal",),
    "2 encoder leak": (
        "terms/test_adversarial.py::test_a_step_after_the_critics_backward_is_the_same_step",
        "methods/test_variants.py::test_the_loss_of_a_critic_has_no_path_into_the_model",
        "methods/test_variants.py::test_a_player_moves_its_own_groups_alone",
    ),
    "3 half batch": ("terms/test_adversarial.py::test_both_players_see_the_full_batch",),
    "4 permutation axis": ("terms/test_adversarial.py::test_columns_are_rearranged_each_on_its_own",),
    "5 DIP": (
        "terms/test_moments.py::test_the_covariance_is_that_of_numpy",
        "terms/test_moments.py::test_a_batch_that_is_there_twice_costs_the_same",
    ),
    "6 capacity": (
        "methods/test_variants.py::test_capacity_counts_optimiser_steps",
        "weights/test_controllers.py::test_capacity_is_of_the_mean_not_the_mean_of_distances",
    ),
    "7 loss scale": (
        "families/test_pixel_families.py::test_twice_the_pixels_are_twice_the_nll",
        "terms/test_evidence_terms.py::test_twice_the_pixels_leave_kl_untouched",
    ),
    "8 step counting": ("methods/test_methods.py::test_every_optimiser_makes_one_update_a_turn",),
    "10 evaluation averages over all batches": ("evaluate/likelihood/test_measure.py::test_every_batch_counts_once",),
    "13 InfoVAE sign": ("methods/test_variants.py::test_an_mmd_of_negative_weight_is_refused",),
    "14 IWAE report": ("terms/test_evidence_terms.py::test_the_logged_bound_is_the_log_of_the_mean_weight",),
    "15 PI controller": ("weights/test_controllers.py::test_pi_leaves_a_bound_on_the_next_step",),
    "16 kernel size": ("methods/test_variants.py::test_models_have_the_published_number_of_parameters",),
    "17 memory survives": (
        "methods/test_methods.py::test_it_resumes_bit_for_bit_after_a_kill",
        "methods/test_methods.py::test_a_run_that_forgot_would_end_elsewhere",
        "methods/test_variants.py::test_a_variant_moves_everything_and_goes_on_where_it_was",
    ),
}
# 9 to 12 are faults of metrics and are tested in evaluate/disentanglement: 9 in test_factor_vae.py and test_irs.py,
# 10 in test_known_answers.py, 11 in test_source.py, 12 in test_factor_vae.py.


@pytest.mark.parametrize("where", [where for tests in FAULTS.values() for where in tests])
def test_the_table_of_faults_names_tests_that_are_there(where: str) -> None:
    file, _, test = where.partition("::")
    tree = ast.parse((Path(__file__).parent / file).read_text())
    assert test in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
