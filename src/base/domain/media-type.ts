/** A name of a type or a subtype (RFC 6838, section 4.2). */
const NAME = '[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}'
const TOKEN = "[A-Za-z0-9!#$%&'*+.^_`|~-]+"
const QUOTED = '"(?:[ !#-\\[\\]-~]|\\\\[ -~])*"'
/** RFC 9110, section 8.3.1; spaces only, no tabs: the value is written into one header field. */
const MEDIA_TYPE = new RegExp(`^${NAME}/${NAME}(?: *;(?: *${TOKEN}=(?:${TOKEN}|${QUOTED}))?)*$`)
/** Longest media type accepted, characters; the longest registered ones have about 100. */
const MAX_LENGTH = 200

/** Media types that a browser executes, or applies to what it executes: never sent with a third party's document. */
const ACTIVE = /\b(?:[mx]?html?|svg|xslt?|css|hta|(?:java|ecma|j|live|vb)script[\d.]*|x-component|x-shockwave-flash)\b/

/** Reports whether a text is a well-formed media type that fits in a header. */
export function isMediaType(text: string): boolean {
  return text.length <= MAX_LENGTH && MEDIA_TYPE.test(text)
}

/** Returns a media type without its parameters, in lower case. */
export function essenceOf(type: string): string {
  return (type.split(';', 1)[0] ?? '').trim().toLowerCase()
}

/** Reports whether a browser would execute content of this media type: HTML, SVG, scripts, style sheets. */
export function isActive(type: string): boolean {
  return ACTIVE.test(essenceOf(type))
}
