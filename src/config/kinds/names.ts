import { readPemFile } from './pem-files.ts'
import { type Setting, type Parsed, absolutePath, textSetting } from './base.ts'
import { isRegistryPlace } from './oci-reference.ts'
import { FEEDS_ROOT, OSV_ROOT, PUBLIC_FEEDS } from '../../base/domain/feed-paths.ts'
import { UNIX_PEER } from '../../base/connections/limit.ts'
import { readNetwork } from '../../base/connections/network.ts'
import { parseScopeEntry } from '../../base/domain/osv-scope.ts'
import { parsePattern } from '../../base/domain/patterns.ts'

/** Paths that are mirrored always; an extra feed may not take their place. */
const BUILT_IN = [...PUBLIC_FEEDS.map(({ path }) => path), OSV_ROOT.slice(0, -1)]

/** A folder, made absolute. It need not exist. */
export function directory(): Setting<string> {
  return textSetting('a folder; a relative one counts from the working directory', 'data', absolutePath)
}

/** A registry, or a part of it, without the slash at its end. */
export function registryPlace(): Setting<string> {
  return textSetting('HOST[:PORT][/PREFIX]', 'registry.example.com/mirror', (text) =>
    isRegistryPlace(text) ? { value: text.replace(/\/$/, '') } : { fault: 'is no HOST[:PORT][/PREFIX] of a registry' },
  )
}

const CERTIFICATE = /-----BEGIN (TRUSTED |X509 )?CERTIFICATE-----/

/** A readable file of PEM certificates, made absolute. */
export function certificateFile(): Setting<string> {
  return textSetting('a file of PEM certificates', '/etc/ssl/certs/internal-ca.pem', (path, context) =>
    readPemFile(path, context, (pem) =>
      CERTIFICATE.test(pem) ? null : 'contains no PEM certificate (no "BEGIN CERTIFICATE" line)',
    ),
  )
}

function parseExternalPath(path: string): Parsed<string> {
  if (!path.startsWith(FEEDS_ROOT)) return { fault: `does not start with ${FEEDS_ROOT}` }
  if (!/^(\/[\w~-][\w.~-]*)+$/.test(path))
    return { fault: 'is not a plain path (no query, "..", "//", "%" or slash at the end)' }
  const taken = BUILT_IN.find((own) => path === own || path.startsWith(`${own}/`))
  return taken === undefined ? { value: path } : { fault: `collides with ${taken}, which is mirrored always` }
}

/** The path of one more public feed to mirror as it is. */
export function externalPath(): Setting<string> {
  return textSetting('paths that start with /external/', '/external/cve_feed', parseExternalPath)
}

/** The form of a cron expression, five or six fields; what they mean is not checked. */
export function looksLikeCron(expression: string): boolean {
  const fields = expression.trim().split(/\s+/)
  return [5, 6].includes(fields.length) && fields.every((field) => /^[\w*,/?#-]+$/.test(field))
}

/** A cron expression, as far as the injected parser accepts it. */
export function cronExpression(example: string): Setting<string> {
  const allowed = 'a cron expression: minute, hour, day, month, weekday (seconds may come first)'
  return textSetting(allowed, `"${example}"`, (value, { validateCron }) =>
    validateCron(value) ? { value: value.trim() } : { fault: 'is not a cron expression' },
  )
}

/** The path of a file that is created where it does not exist, made absolute. */
export function filePath(example: string): Setting<string> {
  const allowed = 'the path of a file; a relative one counts from the working directory'
  return textSetting(allowed, example, absolutePath)
}

/** An address, or a network in CIDR form; `unix`: every connection of a socket in `server.listen`. */
export function network(): Setting<string> {
  const allowed = 'addresses or networks in CIDR form, or unix for connections of a socket in server.listen'
  return textSetting(allowed, '"10.0.0.0/8"', (value) => {
    if (value.trim() === UNIX_PEER) return { value: UNIX_PEER }
    return readNetwork(value.trim()) !== null ? { value: value.trim() } : { fault: 'is not an address or a network' }
  })
}

const HOST = /^(\*|(\*\.)?[a-z\d_]([a-z\d_-]*[a-z\d])?(\.[a-z\d]([a-z\d-]*[a-z\d])?)*)$/i

/** A host, an address or a network to which plain http and private addresses are no danger. */
export function trustedHost(): Setting<string> {
  const allowed = 'host names (*.corp.example for all below), addresses or networks in CIDR form'
  return textSetting(allowed, '"s3.internal", "10.0.0.0/8"', (value) => {
    const text = value.trim()
    return readNetwork(text) !== null || HOST.test(text)
      ? { value: text }
      : { fault: 'is not a host name, an address or a network; give no scheme, port or path' }
  })
}

/** What excludes, before an entry of a scope. */
const NOT = '!'

/** A pattern that names images, packages or ecosystems (`image:library/*`), with ! those that are left out; or an AVR's id. */
export function scopePattern(): Setting<string> {
  const allowed =
    'patterns image:NAME, package:NAME or ecosystem:NAME, where * is any characters, with ! to leave out; or avr:ID'
  return textSetting(allowed, '"image:library/*", "!image:library/*-rc"', (value) => {
    const text = value.trim()
    const isPattern = parsePattern(text.startsWith(NOT) ? text.slice(1) : text) !== null
    if (isPattern || AVR.test(text)) return { value: text }
    return { fault: 'does not have the form image:NAME, package:NAME, ecosystem:NAME or avr:ID, without spaces' }
  })
}

const AVR = /^avr:([^\s\p{C}]{1,500})$/u

/** Returns the entries of a scope that add to it, and without their ! those that take away. */
export function splitScope(entries: readonly string[]) {
  return {
    include: entries.filter((entry) => !entry.startsWith(NOT) && !AVR.test(entry)),
    exclude: entries.filter((entry) => entry.startsWith(NOT)).map((entry) => entry.slice(1)),
  }
}

/** Returns the ids of the AVRs that patterns name. */
export function namedAvrs(patterns: readonly string[]): string[] {
  return patterns.flatMap((pattern) => AVR.exec(pattern)?.[1] ?? [])
}

/** An ecosystem, or the beginning of ids of OSV records: `npm`, `Ubuntu:22.04`, `GHSA-`. */
export function osvScopeEntry(): Setting<string> {
  const allowed =
    'ecosystems (npm, Ubuntu:22.04) or beginnings of record ids that end with - or * (GHSA-), with ! to leave out'
  return textSetting(allowed, '"npm", "!Ubuntu"', (value) => {
    const text = value.trim()
    return parseScopeEntry(text.startsWith(NOT) ? text.slice(1) : text) === null
      ? { fault: 'is neither an ecosystem nor the beginning of ids, with * only at the end' }
      : { value: text }
  })
}

/** An identifier of the service's: opaque, but one visible word. */
export function identifier(): Setting<string> {
  return textSetting('an identifier: visible characters, no spaces', '8f14e45f', (value) =>
    /^[^\s\p{C}]{1,500}$/u.test(value.trim())
      ? { value: value.trim() }
      : { fault: 'is not one word of visible characters' },
  )
}

/** The name of a mirror in its fleet, with or without the place where it is. */
export function mirrorName(): Setting<string> {
  return textSetting('a name, or NAME@PLACE, without spaces', 'mirror-1@berlin', (value) =>
    /^[^\s\p{C}@]{1,250}(@[^\s\p{C}@]{1,249})?$/u.test(value.trim())
      ? { value: value.trim() }
      : { fault: 'is not one word, or two with an @ between them' },
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

/** A vendor prefix before ecosystems in OSV records: `Root` of `Root:Debian:12`. */
export function ecosystemVendor(): Setting<string> {
  return textSetting('vendor prefixes before an ecosystem', '"Root"', (value) =>
    /^[^:\p{C}]{1,200}$/u.test(value.trim())
      ? { value: value.trim() }
      : { fault: 'is not a name without colons, as Root of Root:Debian:12' },
  )
}
