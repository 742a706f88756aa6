-- Scored by a decision forest of dpforest-duckdb 0.1.0; reads the table it scores, nothing else.
-- model: nursery
-- recipe: dpdf, 1 tree, 101 nodes, 4 deep
-- guarantee: ε = 1, δ = 0, per row, add-remove neighbours
-- private: yes
-- Values that a CASE does not name (NULL, NaN, out of the domain) take its ELSE.
CREATE TABLE "scored" AS
WITH "dpforest_leaves" AS (
  SELECT
    t.*,
    -- leaf of tree 1
    CASE
      WHEN "t"."health" = 'recommended' THEN CASE
        WHEN "t"."has_nurs" = 'proper' THEN CASE
          WHEN "t"."social" = 'nonprob' THEN CASE
            WHEN "t"."housing" = 'convenient' THEN 36
            WHEN "t"."housing" = 'less_conv' THEN 39
            WHEN "t"."housing" = 'critical' THEN 49
            ELSE 30
          END
          WHEN "t"."social" = 'slightly_prob' THEN 38
          WHEN "t"."social" = 'problematic' THEN CASE
            WHEN "t"."finance" = 'convenient' THEN 45
            WHEN "t"."finance" = 'inconv' THEN 50
            ELSE 67
          END
          ELSE 68
        END
        WHEN "t"."has_nurs" = 'less_proper' THEN CASE
          WHEN "t"."finance" = 'convenient' THEN CASE
            WHEN "t"."form" = 'complete' THEN 55
            WHEN "t"."form" = 'completed' THEN 34
            WHEN "t"."form" = 'incomplete' THEN 53
            WHEN "t"."form" = 'foster' THEN 43
            ELSE 71
          END
          WHEN "t"."finance" = 'inconv' THEN 44
          ELSE 60
        END
        WHEN "t"."has_nurs" = 'improper' THEN CASE
          WHEN "t"."parents" = 'usual' THEN CASE
            WHEN "t"."form" = 'complete' THEN 48
            WHEN "t"."form" = 'completed' THEN 41
            WHEN "t"."form" = 'incomplete' THEN 35
            WHEN "t"."form" = 'foster' THEN 46
            ELSE 68
          END
          WHEN "t"."parents" = 'pretentious' THEN 40
          WHEN "t"."parents" = 'great_pret' THEN CASE
            WHEN "t"."children" = '1' THEN 9
            WHEN "t"."children" = '2' THEN 26
            WHEN "t"."children" = '3' THEN 5
            WHEN "t"."children" = 'more' THEN 19
            ELSE 15
          END
          ELSE 14
        END
        WHEN "t"."has_nurs" = 'critical' THEN CASE
          WHEN "t"."parents" = 'usual' THEN 42
          WHEN "t"."parents" = 'pretentious' THEN 11
          WHEN "t"."parents" = 'great_pret' THEN 12
          ELSE 32
        END
        WHEN "t"."has_nurs" = 'very_crit' THEN CASE
          WHEN "t"."housing" = 'convenient' THEN CASE
            WHEN "t"."social" = 'nonprob' THEN 37
            WHEN "t"."social" = 'slightly_prob' THEN 27
            WHEN "t"."social" = 'problematic' THEN 21
            ELSE 70
          END
          WHEN "t"."housing" = 'less_conv' THEN 7
          WHEN "t"."housing" = 'critical' THEN 24
          ELSE 61
        END
        ELSE 72
      END
      WHEN "t"."health" = 'priority' THEN CASE
        WHEN "t"."has_nurs" = 'proper' THEN CASE
          WHEN "t"."parents" = 'usual' THEN CASE
            WHEN "t"."finance" = 'convenient' THEN 56
            WHEN "t"."finance" = 'inconv' THEN 52
            ELSE 65
          END
          WHEN "t"."parents" = 'pretentious' THEN 59
          WHEN "t"."parents" = 'great_pret' THEN CASE
            WHEN "t"."social" = 'nonprob' THEN 28
            WHEN "t"."social" = 'slightly_prob' THEN 2
            WHEN "t"."social" = 'problematic' THEN 10
            ELSE 68
          END
          ELSE 64
        END
        WHEN "t"."has_nurs" = 'less_proper' THEN CASE
          WHEN "t"."parents" = 'usual' THEN 57
          WHEN "t"."parents" = 'pretentious' THEN 58
          WHEN "t"."parents" = 'great_pret' THEN CASE
            WHEN "t"."housing" = 'convenient' THEN 33
            WHEN "t"."housing" = 'less_conv' THEN 62
            WHEN "t"."housing" = 'critical' THEN 22
            ELSE 26
          END
          ELSE 15
        END
        WHEN "t"."has_nurs" = 'improper' THEN CASE
          WHEN "t"."parents" = 'usual' THEN 54
          WHEN "t"."parents" = 'pretentious' THEN CASE
            WHEN "t"."housing" = 'convenient' THEN 31
            WHEN "t"."housing" = 'less_conv' THEN 29
            WHEN "t"."housing" = 'critical' THEN 13
            ELSE 63
          END
          WHEN "t"."parents" = 'great_pret' THEN 23
          ELSE 47
        END
        WHEN "t"."has_nurs" = 'critical' THEN CASE
          WHEN "t"."form" = 'complete' THEN 6
          WHEN "t"."form" = 'completed' THEN CASE
            WHEN "t"."housing" = 'convenient' THEN 20
            WHEN "t"."housing" = 'less_conv' THEN 26
            WHEN "t"."housing" = 'critical' THEN 8
            ELSE 51
          END
          WHEN "t"."form" = 'incomplete' THEN 17
          WHEN "t"."form" = 'foster' THEN CASE
            WHEN "t"."finance" = 'convenient' THEN 18
            WHEN "t"."finance" = 'inconv' THEN 16
            ELSE 3
          END
          ELSE 69
        END
        WHEN "t"."has_nurs" = 'very_crit' THEN 25
        ELSE 66
      END
      WHEN "t"."health" = 'not_recom' THEN 73
      ELSE 4
    END AS "dpforest_leaf_0"
  FROM "nursery_test" AS t
),
"dpforest_scored" AS (
  SELECT
    t.* EXCLUDE ("dpforest_leaf_0"),
    -- votes for not_recom
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 200000, 571429, 619048, 689655, 994570][t."dpforest_leaf_0"] AS "dpforest_votes_0",
    -- votes for recommend
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 500000, 750000, 1000000, 0, 0, 0, 0, 0][t."dpforest_leaf_0"] AS "dpforest_votes_1",
    -- votes for very_recom
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 200000, 346154, 750000, 869565, 1000000, 0, 0, 0, 0, 0, 0, 0, 0][t."dpforest_leaf_0"] AS "dpforest_votes_2",
    -- votes for priority
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 381818, 421875, 422764, 454545, 506173, 576923, 582278, 619469, 628205, 629032, 643836, 673004, 674699, 732143, 741379, 758454, 766234, 774854, 778571, 800000, 842105, 853659, 876712, 887500, 909091, 921875, 924242, 935065, 940000, 957983, 962264, 963855, 990521, 1000000, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0][t."dpforest_leaf_0"] AS "dpforest_votes_3",
    -- votes for spec_prior
    [0, 577982, 600000, 636364, 666667, 683673, 688525, 701299, 717391, 728814, 755274, 769912, 787879, 809524, 818182, 841667, 863946, 865385, 869565, 871795, 880435, 886076, 925620, 928571, 966102, 1000000, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0][t."dpforest_leaf_0"] AS "dpforest_votes_4"
  FROM "dpforest_leaves" AS t
)
SELECT
  s.* EXCLUDE ("dpforest_votes_0", "dpforest_votes_1", "dpforest_votes_2", "dpforest_votes_3", "dpforest_votes_4"),
  CAST(CASE
    WHEN s."dpforest_votes_0" = greatest(s."dpforest_votes_0", s."dpforest_votes_1", s."dpforest_votes_2", s."dpforest_votes_3", s."dpforest_votes_4") THEN 'not_recom'
    WHEN s."dpforest_votes_1" = greatest(s."dpforest_votes_0", s."dpforest_votes_1", s."dpforest_votes_2", s."dpforest_votes_3", s."dpforest_votes_4") THEN 'recommend'
    WHEN s."dpforest_votes_2" = greatest(s."dpforest_votes_0", s."dpforest_votes_1", s."dpforest_votes_2", s."dpforest_votes_3", s."dpforest_votes_4") THEN 'very_recom'
    WHEN s."dpforest_votes_3" = greatest(s."dpforest_votes_0", s."dpforest_votes_1", s."dpforest_votes_2", s."dpforest_votes_3", s."dpforest_votes_4") THEN 'priority'
    ELSE 'spec_prior'
  END AS ENUM('not_recom', 'recommend', 'very_recom', 'priority', 'spec_prior')) AS "prediction",
  CAST(s."dpforest_votes_0" AS DOUBLE) / (s."dpforest_votes_0" + s."dpforest_votes_1" + s."dpforest_votes_2" + s."dpforest_votes_3" + s."dpforest_votes_4") AS "p_not_recom",
  CAST(s."dpforest_votes_1" AS DOUBLE) / (s."dpforest_votes_0" + s."dpforest_votes_1" + s."dpforest_votes_2" + s."dpforest_votes_3" + s."dpforest_votes_4") AS "p_recommend",
  CAST(s."dpforest_votes_2" AS DOUBLE) / (s."dpforest_votes_0" + s."dpforest_votes_1" + s."dpforest_votes_2" + s."dpforest_votes_3" + s."dpforest_votes_4") AS "p_very_recom",
  CAST(s."dpforest_votes_3" AS DOUBLE) / (s."dpforest_votes_0" + s."dpforest_votes_1" + s."dpforest_votes_2" + s."dpforest_votes_3" + s."dpforest_votes_4") AS "p_priority",
  CAST(s."dpforest_votes_4" AS DOUBLE) / (s."dpforest_votes_0" + s."dpforest_votes_1" + s."dpforest_votes_2" + s."dpforest_votes_3" + s."dpforest_votes_4") AS "p_spec_prior"
FROM "dpforest_scored" AS s;
