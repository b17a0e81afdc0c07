"""How languages other than English say "answer" and "the answer is"; patterns, in lower case.

The languages of MGSM and of XTREME's question answering, and a few more. Composed (NFC), as the
responses are when they are searched.
"""

# ruff: noqa: RUF001  # words of other languages

from __future__ import annotations

_WORDS = (
    r"respuesta(?: final| correcta)?",
    r"r(?:é|e)ponse(?: finale| correcte)?",
    r"(?:(?:endgültige|finale|richtige) )?antwort",
    r"(?:(?:окончательный|итоговый|правильный) )?ответ",
    r"(?:最终|最終|最後の|最終的な|正确|正しい)?(?:答案|答え|解答|回答|答)",
    r"คำตอบ(?:สุดท้าย|ที่ถูกต้อง)?",
    r"jibu(?: la mwisho| sahihi)?",
    r"(?:(?:চূড়ান্ত|সঠিক) )?উত্তর",
    r"(?:(?:తుది|చివరి|సరైన) )?(?:సమాధానం|జవాబు)",
    r"resposta(?: final| correta)?",
    r"risposta(?: finale| corretta)?",
    r"(?:(?:ال)?(?:إجابة|جواب))(?: النهائية| النهائي| الصحيحة| الصحيح)?",
    r"(?:(?:अंतिम|सही) )?(?:उत्तर|जवाब)",
    r"(?:최종 )?(?:정답|답변|답)",
    r"(?:(?:nihai|doğru|son) )?(?:cevap|yanıt)",
    r"(?:đáp án|đáp số|câu trả lời|trả lời)(?: cuối cùng| đúng)?",
    r"(?:(?:τελική|σωστή) )?απάντηση",
    r"(?:(?:ostateczna|prawidłowa) )?odpowiedź",
    r"jawaban(?: akhir)?",
    r"(?:(?:definitieve|juiste) )?antwoord",
    r"(?:остаточна )?відповідь",
    r"(?:ה?תשובה)(?: הסופית)?",
)
ANSWER = rf"(?:{'|'.join(_WORDS)})"
STEMS = (
    "respuesta", "réponse", "reponse", "antwort", "ответ", "答", "คำตอบ", "jibu", "উত্তর", "సమాధానం",
    "జవాబు", "resposta", "risposta", "إجابة", "جواب", "उत्तर", "जवाब", "답", "cevap", "yanıt", "đáp",
    "trả lời", "απάντηση", "odpowiedź", "jawaban", "antwoord", "відповідь", "תשובה",
)  # fmt: skip
"""One of these stands in every text that has such a word."""
ARTICLE = r"(?:(?:la|le|el|il|die|der|das|o|a|het|η)[ \t]++)?+"

_IS = (
    r"es|est|ist|lautet|beträgt|è|é|это|ni|هو|هي|है|হল|হলো|হচ্ছে|হবে|là|είναι|jest|to|adalah|is|은|는"
)
IS = rf"[ \t*_]*+(?:(?:{_IS})(?![^\W\d_])|是|为|為|は|คือ|เท่ากับ)"
"""After the word; in some scripts joined to it."""
