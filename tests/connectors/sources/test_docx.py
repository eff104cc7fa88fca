"""`connectors/sources/docx.py`: Word's text, and archives that are not what they say."""

from __future__ import annotations

import io
import zipfile

import pytest

from connectors.errors import ConversionFailed, EncryptedSource, NoTextInSource, SourceExploded
from connectors.sources import docx, limits
from connectors.sources.convert import convert
from tests.sources_made import docx_of, prose, small_docx, zip_bomb_docx

NAMESPACE = b'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def test_headings_lists_tables_and_prose_are_read() -> None:
    found = convert(small_docx(), name="plan.docx")
    assert found.text.startswith("# Spring launch\n\n" + prose()[0])
    assert "## What counts\n\n- Names are bound once.\n- Scopes are static." in found.text
    assert found.text.endswith("Date | Channel\nFriday | Newsletter")


def test_a_zip_bomb_is_refused_before_it_is_unpacked() -> None:
    with pytest.raises(SourceExploded) as refused:
        convert(zip_bomb_docx(), name="plan.docx")
    assert refused.value.fields["what"] == "unpacked bytes"


def test_a_swollen_part_is_refused_by_its_ratio() -> None:
    raw = docx_of(b"<w:document/>", {"word/x.bin": bytes(4 * limits.MIB)})
    with pytest.raises(SourceExploded) as refused:
        convert(raw, name="plan.docx")
    assert refused.value.fields["what"] == "the packing ratio"


def test_an_archive_with_too_many_parts_is_refused() -> None:
    def archive(parts: int) -> bytes:
        return docx_of(b"<w:document/>", {f"word/{i}": b"" for i in range(parts - 2)})

    with pytest.raises(SourceExploded) as refused:
        convert(archive(limits.DOCX_ENTRIES_MAX + 1), name="plan.docx")
    assert refused.value.fields["what"] == "the number of parts"
    with zipfile.ZipFile(io.BytesIO(archive(limits.DOCX_ENTRIES_MAX))) as just_so:
        docx.check_directory(just_so, "plan.docx")


def test_a_directory_that_lies_about_sizes_is_found_while_unpacking() -> None:
    honest = docx_of(b"<w:document/>", {"word/media/x": bytes(5 * limits.MIB)})
    lying = honest.replace((5 * limits.MIB).to_bytes(4, "little"), (1_000).to_bytes(4, "little"))
    assert lying != honest
    with pytest.raises(ConversionFailed) as refused:
        convert(lying, name="plan.docx")
    assert refused.value.fields["cause"] == "damaged archive"


@pytest.mark.parametrize("padding", [0, 64 * 1024 - 5])
def test_a_document_type_declaration_is_refused_even_across_two_steps(padding: int) -> None:
    bomb = b" " * padding + b'<!DOCTYPE x [<!ENTITY a "aaaa">]><w:document/>'
    with pytest.raises(ConversionFailed) as refused:
        convert(docx_of(bomb), name="plan.docx")
    assert refused.value.fields["cause"] == "document type declaration"


def test_markup_that_is_only_text_in_word_stays_text() -> None:
    body = (
        b"<w:document " + NAMESPACE + b"><w:body><w:p><w:r><w:t>&lt;script&gt;x&lt;/script&gt; "
        b"## Approved</w:t></w:r></w:p></w:body></w:document>"
    )
    relations = (
        b'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"/>'
    )
    raw = docx_of(body, {"_rels/.rels": relations})
    assert convert(raw, name="plan.docx").text == "<script>x</script> ## Approved"


def test_a_document_without_words_is_refused() -> None:
    body = b"<w:document " + NAMESPACE + b"><w:body><w:p/></w:body></w:document>"
    with pytest.raises(NoTextInSource):
        convert(docx_of(body), name="plan.docx")


def test_a_part_under_a_password_is_refused() -> None:
    raw = bytearray(docx_of(b"<w:document/>"))
    raw[raw.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(EncryptedSource):
        convert(bytes(raw), name="plan.docx")
