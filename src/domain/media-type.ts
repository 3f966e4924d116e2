/** RFC 6838, section 4.2: a name of a type or a subtype. */
const NAME = '[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}'
const TOKEN = "[A-Za-z0-9!#$%&'*+.^_`|~-]+"
const QUOTED = '"(?:[ !#-\\[\\]-~]|\\\\[ -~])*"'
/** RFC 9110, section 8.3.1; spaces alone, no tabs: it is written into one header field. */
const MEDIA_TYPE = new RegExp(`^${NAME}/${NAME}(?: *;(?: *${TOKEN}=(?:${TOKEN}|${QUOTED}))?)*$`)
/** Characters that a media type may have; the longest that are registered have about 100. */
const MAX_LENGTH = 200

/** What a browser runs, or applies to what it runs: never sent with a document of somebody else's. */
const ACTIVE =
  /\b(?:[mx]?html?|svg|xslt?|css|hta|(?:java|ecma|j|live|vb)script[\d.]*|x-component|x-shockwave-flash)\b/

/** Tells whether a text is a well-formed media type that a header can hold. */
export function isMediaType(text: string): boolean {
  return text.length <= MAX_LENGTH && MEDIA_TYPE.test(text)
}

/** Returns a media type without its parameters, in lower case. */
export function essenceOf(type: string): string {
  return (type.split(';', 1)[0] ?? '').trim().toLowerCase()
}

/** Tells whether a browser would run what it is sent with this media type: HTML, SVG, scripts, style sheets. */
export function isActive(type: string): boolean {
  return ACTIVE.test(essenceOf(type))
}
