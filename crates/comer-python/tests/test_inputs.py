"""Every kind of input, and the exceptions for those that cannot be read."""

import io

import comer
import numpy as np
import pytest
from conftest import SQUARE
from PIL import Image


@pytest.fixture(scope="module")
def picture(recognizer, square):
    """Black ink on white, large, as a scan would be."""
    drawn = recognizer.recognize(square, greedy=True).image
    return np.kron(255 - drawn, np.ones((4, 4), np.uint8))


def read(recognizer, source, **options):
    return recognizer.recognize(source, greedy=True, **options).latex


def test_files_bytes_and_inkml(recognizer, square):
    text = square.read_text()
    for source in [square, str(square), text, text.encode(), bytearray(text.encode()), memoryview(text.encode())]:
        assert read(recognizer, source) == SQUARE


def test_strokes_are_lists_tuples_and_arrays(recognizer, square, square_strokes):
    strokes = square_strokes
    expected = recognizer.recognize(square, greedy=True)
    for source in [strokes, tuple(strokes), [np.array(stroke) for stroke in strokes]]:
        found = recognizer.recognize(source, greedy=True)
        assert found.latex == SQUARE
        assert (found.image == expected.image).all()


def png(picture):
    file = io.BytesIO()
    picture.save(file, "PNG")
    return file.getvalue()


def test_pixels_in_every_form_are_read_as_from_a_file(recognizer, picture):
    image = Image.fromarray(picture)
    expected = recognizer.recognize(png(image), greedy=True)
    assert expected.latex == SQUARE
    wide = np.empty((picture.shape[0], 2 * picture.shape[1]), np.uint8)
    wide[:, ::2] = picture
    opaque = np.dstack([picture] * 3 + [np.full_like(picture, 255)])
    forms = {
        "uint8": picture,
        "not contiguous": wide[:, ::2],
        "uint16": picture.astype(np.uint16) * 257,
        "float": picture / 255,
        "one channel": picture[:, :, None],
        "RGB": np.dstack([picture] * 3),
        "RGBA": opaque,
        "PIL L": image,
        "PIL RGB": image.convert("RGB"),
        "PIL RGBA": image.convert("RGBA"),
        "PIL LA": image.convert("LA"),
        "PIL P": image.convert("P"),
        "PIL I;16": Image.fromarray(picture.astype(np.uint16) * 257),
        "PIL CMYK": image.convert("CMYK"),
    }
    for name, form in forms.items():
        assert (recognizer.recognize(form, greedy=True).image == expected.image).all(), name
    bits = picture > 127
    for form in [bits, Image.fromarray(bits)]:
        assert read(recognizer, form) == SQUARE


def test_colours_are_weighed_as_in_a_file(recognizer, picture):
    blue = np.dstack([picture, picture, np.full_like(picture, 255)])
    seen = recognizer.recognize(png(Image.fromarray(blue)), greedy=True).image
    assert (recognizer.recognize(blue, greedy=True).image == seen).all()


def test_transparent_ground(recognizer, picture):
    ink = np.dstack([np.zeros_like(picture)] * 3 + [255 - picture])
    assert read(recognizer, ink) == SQUARE
    assert read(recognizer, Image.fromarray(ink)) == SQUARE


def test_pil_images_are_turned_as_exif_says(recognizer, picture):
    turned = Image.fromarray(picture).rotate(90, expand=True)
    exif = turned.getexif()
    exif[0x0112] = 6  # To be shown turned by 90 degrees clockwise.
    file = io.BytesIO()
    turned.save(file, "PNG", exif=exif)
    assert read(recognizer, Image.open(file)) == SQUARE


def test_raw_images_are_taken_as_they_are(recognizer, square):
    drawn = recognizer.recognize(square, greedy=True).image
    again = recognizer.recognize(drawn, greedy=True, raw=True)
    assert again.latex == SQUARE and (again.image == drawn).all()


@pytest.mark.parametrize(
    ("source", "exception", "message"),
    [
        ("missing.png", FileNotFoundError, "missing.png"),
        (b"", comer.InputError, "empty"),
        (b"GIF89a", comer.InputError, "image"),
        ("<p/>", comer.InputError, "InkML"),
        ([], comer.InputError, "no strokes"),
        ([[(1.0,)]], comer.InputError, "stroke 0: point 0 has 1 values"),
        ([["a"]], comer.InputError, "stroke 0: expected a list of points"),
        ([[(float("nan"), 0)]], comer.InputError, "x is NaN"),
        (7, TypeError, "found int, expected a path"),
        (np.zeros((3, 3, 9), np.uint8), comer.InputError, "[3, 3, 9]"),
        (np.zeros((0, 5), np.uint8), comer.InputError, "at least one"),
        (np.zeros((40, 40), np.int64), comer.InputError, "expected uint8"),
        (np.full((40, 40), 7.0), comer.InputError, "from 7 to 7"),
        (np.full((40, 40), np.nan), comer.InputError, "NaN"),
        (np.full((40, 40), 255, np.uint8), comer.InputError, "no ink"),
    ],
)
def test_errors_say_what_is_wrong(recognizer, source, exception, message):
    with pytest.raises(exception) as error:
        recognizer.recognize(source)
    assert message in str(error.value)


def test_errors_of_files_name_them(recognizer, tmp_path):
    path = tmp_path / "bad.png"
    path.write_bytes(b"not an image")
    with pytest.raises(comer.InputError, match="bad.png.*no known kind"):
        recognizer.recognize(path)
