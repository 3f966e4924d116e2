import { parsePattern } from '../patterns.ts'
import { type Setting, textSetting } from './kinds.ts'

/** A pattern that names images, packages or ecosystems: `image:library/*`. */
export function scopePattern(): Setting<string> {
  const allowed = 'patterns image:NAME, package:NAME or ecosystem:NAME, where * is any characters'
  return textSetting(allowed, '"image:library/*"', (value) =>
    parsePattern(value) === null
      ? { fault: 'does not say image:, package: or ecosystem: and then a name without spaces' }
      : { value: value.trim() },
  )
}

/** An identifier of the service's: opaque, but one visible word. */
export function identifier(): Setting<string> {
  return textSetting('an identifier: visible characters, no spaces', '8f14e45f', (value) =>
    /^[^\s\p{C}]{1,500}$/u.test(value.trim())
      ? { value: value.trim() }
      : { fault: 'is not one word of visible characters' },
  )
}

/** The word that a vendor puts into field names and event types. */
export function vendorName(): Setting<string> {
  return textSetting('a word of small letters, digits and _', 'service', (value) =>
    /^[a-z][a-z\d_]{0,39}$/.test(value.trim())
      ? { value: value.trim() }
      : { fault: 'is not a word of small letters, digits and _' },
  )
}

/** A vendor as it stands before its ecosystems in OSV records: `Root` of `Root:Debian:12`. */
export function ecosystemVendor(): Setting<string> {
  return textSetting('names of vendors as they stand before an ecosystem', '"Root"', (value) =>
    /^[^:\p{C}]{1,200}$/u.test(value.trim())
      ? { value: value.trim() }
      : { fault: 'is not a name without colons, as Root of Root:Debian:12' },
  )
}
