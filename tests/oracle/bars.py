"""Figures that plans of public models must reach, in bytes of the head that TFLM reports, and the checks of them.

`TABLE` has, for public models of `../shared/models`, the head that TFLM's own planner needs for tensors alone and the
least peak over all orders of operators, each tensor in memory of its own, found by a search other than arenaplan's.
"""
import math

# model -> (without a plan, most with the plan `tflm`). Other models are judged by the second figure of TABLE.
TFLM = {
    "vww_96_int8": (73_728, 55_296),
    "esphome_v1_alexa": (21_216, 14_208),
    "esphome_v2_vad": (1_536, 1_248),
    "esphome_v2_okay_nabu": (4_096, 2_944),
    "lyra_soundstream_encoder": (48_896, 41_472),
    "hand_recrop": (1_572_864, 1_310_720),
    "audio_preprocessor_int8": (3_040, 3_040),
    "keyword_scrambled_8bit": (672, 672),
    "blazeface_front_128": (442_368, 344_064),
}
# model -> most with nothing shared: by the order of operators alone.
ORDER = {
    "esphome_v1_alexa": 14_208,
    "esphome_v2_vad": 1_248,
    "esphome_v2_okay_nabu": 2_944,
    "lyra_soundstream_encoder": 41_472,
    "hand_recrop": 1_310_720,
}
# model -> most with the plan `tflm-reference`.
REFERENCE = {
    "vww_96_int8": 36_880,
    "kws_ref_model": 9_792,
    "pretrainedResnet_quant": 33_312,
    "person_detect": 36_880,
    "model_mobilenetv2_160_035": 307_216,
    "fomo_face_detection": 115_248,
    "yolo_person_detect": 57_648,
    "blazeface_front_128": 229_376,
    "str_ww_ref_model": 3_840,
}
# model -> (TFLM's greedy, best order): tensors only.
TABLE = {
    "blazeface_front_128": (442_368, 344_064),
    "face_landmarks_192": (552_960, 552_960),
    "hand_recrop": (1_572_864, 1_310_720),
    "mediapipe_face_landmark": (589_824, 442_368),
    "ad01_fp32": (3_072, 3_072),
    "ad01_int8": (768, 768),
    "kws_ref_model": (16_000, 16_000),
    "kws_ref_model_float32": (64_000, 64_000),
    "pretrainedResnet": (196_608, 196_608),
    "pretrainedResnet_quant": (49_152, 49_152),
    "str_ww_ref_model": (6_656, 6_656),
    "vww_96_int8": (73_728, 55_296),
    "mobilenet_v1_0.25_128_quant": (131_072, 98_304),
    "model_mobilenetv2_160_035": (384_000, 384_000),
    "hps_model_2022_01_05_89ops": (256_224, 211_504),
    "presence_0_320_240_1_20220117_140437_201k_26k_96ops": (231_520, 205_968),
    "lenet5_quantized": (5_024, 4_320),
    "hello_world_int8": (32, 32),
    "magic_wand": (13_824, 13_824),
    "model_magic_wand": (3_456, 3_456),
    "simple_add_model": (49_152, 49_152),
    "sine_float": (128, 128),
    "keyword_scrambled": (288, 288),
    "micro_speech_quantized": (5_968, 5_968),
    "fomo_face_detection": (225_840, 225_840),
    "person_detect": (55_296, 55_296),
    "audio_preprocessor_int8": (3_040, 2_096),
    "dtln_noise_suppression": (544, 544),
    "rnnoise_INT8": (1_040, 1_040),
    "trained_lstm": (5_376, 5_376),
    "trained_lstm_int8": (1_344, 1_344),
    "yolo_lc_192": (258_048, 258_048),
    "yolo_person_detect": (112_928, 112_928),
}
# model -> most with the plan `arenaplan`: what the search found with views, outputs in place and CONCATENATION without
# copies, but nothing that lies over its input in part, except for the two models whose head PAD decides; then two models of
# streaming wake words, the second of which gets half of TFLM's own head.
OWN = {
    "blazeface_front_128": 327_680,
    "face_landmarks_192": 552_960,
    "hand_recrop": 1_310_720,
    "mediapipe_face_landmark": 442_368,
    "ad01_fp32": 3_072,
    "ad01_int8": 768,
    "kws_ref_model": 16_000,
    "kws_ref_model_float32": 64_000,
    "pretrainedResnet": 196_608,
    "pretrainedResnet_quant": 49_152,
    "str_ww_ref_model": 6_656,
    "vww_96_int8": 55_296,
    "mobilenet_v1_0.25_128_quant": 98_304,
    "model_mobilenetv2_160_035": 384_000,
    "hps_model_2022_01_05_89ops": 211_504,
    "presence_0_320_240_1_20220117_140437_201k_26k_96ops": 205_968,
    "lenet5_quantized": 4_320,
    "hello_world_int8": 32,
    "magic_wand": 13_824,
    "model_magic_wand": 3_456,
    "simple_add_model": 32_768,
    "sine_float": 128,
    "keyword_scrambled": 288,
    "micro_speech_quantized": 5_968,
    "fomo_face_detection": 115_296,
    "person_detect": 55_296,
    "audio_preprocessor_int8": 2_096,
    "dtln_noise_suppression": 400,
    "rnnoise_INT8": 752,
    "trained_lstm": 5_376,
    "trained_lstm_int8": 1_344,
    "yolo_lc_192": 258_048,
    "yolo_person_detect": 57_680,
    "esphome_v1_alexa": 7_184,
    "esphome_v2_okay_nabu": 2_048,
}
# Geometric mean of the heads with the plan `tflm-reference`, in parts of TFLM's own, over the models of TABLE.
MEAN = 0.72
MEAN_OF = 31        # models of TABLE that the wheel runs; where a folder has fewer, the mean is not judged


def above(head, most, plan):
    """Why a head is above a bound for tensors alone: None if it is not, "" if there is no good reason, else the reason."""
    if head <= most:
        return None
    needed = plan["optimal"] and plan["bound_with_scratch_bytes"] > most
    return f"{head - most} above {most}, for scratch" if needed else ""


def check_bars(found, bar):
    """Judges `found`: model -> {name of the plan: (head without a plan, head with it, figures of arenaplan)}. `bar` is
    given each bar's name, the text of what was missed or None, and a note."""
    for model, plans in sorted(found.items()):
        if "tflm" in plans:
            before, head, plan = plans["tflm"]
            if model in TFLM:
                unplanned, most = TFLM[model]
                bar(f"{model}, no plan", None if before == unplanned else f"head is {before}, not {unplanned}")
                bar(f"{model}, tflm", None if head <= most else f"head is {head}, above {most}")
            elif model in TABLE:
                reason = above(head, TABLE[model][1], plan)
                missed = f"head {head} is above {TABLE[model][1]}, and scratch is not the reason" if reason == "" else None
                bar(f"{model}, tflm", missed, reason)
        if "tflm, nothing shared" in plans and model in ORDER:
            head = plans["tflm, nothing shared"][1]
            bar(f"{model}, order alone", None if head <= ORDER[model] else f"head is {head}, above {ORDER[model]}")
        if "tflm-reference" in plans and model in REFERENCE:
            head = plans["tflm-reference"][1]
            bar(f"{model}, tflm-reference", None if head <= REFERENCE[model] else
                f"head is {head}, above {REFERENCE[model]}")


def missed_own(model, head):
    """In words, how far the head of a model with the plan `arenaplan` is above its bar; None if it is not."""
    most = OWN.get(model)
    return f"head is {head:,}, above {most:,}" if most is not None and head > most else None


def mean(found, plan):
    """Geometric mean of the heads with a plan in parts of those without, over the models of TABLE, and their number."""
    ratios = [plans[plan][1] / plans[plan][0] for model, plans in found.items() if model in TABLE and plan in plans]
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else 1.0, len(ratios)


# model -> most with the plan `tflm` and stripes that may add 10 % of work.
STRIPES = {
    "person_detect": 27_648,
    "vww_96_int8": 37_056,
    "pretrainedResnet_quant": 33_280,
    "fomo_face_detection": 51_100,
    "yolo_person_detect": 38_432,
    "model_mobilenetv2_160_035": 100_000,
}
# Vision models over which means of heads with stripes are taken, and the most that these means may be, by target.
STRIPED = ("vww_96_int8", "person_detect", "pretrainedResnet_quant", "model_mobilenetv2_160_035", "mcunet_vww",
           "fomo_face_detection", "yolo_person_detect", "blazeface_front_128", "mediapipe_face_landmark")
STRIPES_MEAN = {"tflm": 0.48, "tflm-reference": 0.40}
# Seconds for a plan: of a model of STRIPED, and of any other.
STRIPES_SECONDS = (5, 30)


def check_stripes(found, bar):
    """Judges `found`: target -> {model: {before, unstriped, head: bytes of heads, seconds}}. `bar` as for check_bars()."""
    for target, models in found.items():
        for model, p in sorted(models.items()):
            most = STRIPES.get(model) if target == "tflm" else None
            if most is not None:
                bar(f"{model}, {target}, stripes", None if p["head"] <= most else f"head is {p['head']:,}, above {most:,}")
            # Where the arena counts, the tail may be worth a larger head; for these models it is not.
            if target == "tflm-reference" and model in STRIPED:
                bar(f"{model}, {target}, with and without stripes", None if p["head"] <= p["unstriped"] else
                    f"head is {p['head']:,}, above {p['unstriped']:,} without stripes")
            seconds = STRIPES_SECONDS[model not in STRIPED]
            bar(f"{model}, {target}, time", None if p["seconds"] < seconds else f"{p['seconds']:.1f} s")
        ratios = [models[m]["head"] / models[m]["before"] for m in STRIPED if m in models]
        if len(ratios) == len(STRIPED):
            mean_head = math.exp(sum(map(math.log, ratios)) / len(ratios))
            most = STRIPES_MEAN[target]
            bar(f"mean of {len(ratios)} heads, {target}, stripes", None if mean_head <= most else
                f"{mean_head:.3f} is above {most}", f"{mean_head:.3f}")
