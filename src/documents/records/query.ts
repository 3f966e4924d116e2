import { isObject } from '../../base/json/objects.ts'
import { MirrorError } from '../../base/errors.ts'
import { releaseIn } from '../../base/identity/identity.ts'
import { normalName } from '../../base/identity/names.ts'
import { packageOf } from '../../base/identity/package.ts'
import { parsePurl } from '../../base/identity/purl.ts'
import { type Ecosystem, findEcosystem } from '../../base/versions/ecosystems.ts'

/** A query, read and checked. */
export interface Query {
  /** Null: of an ecosystem that no package here can belong to (an unknown type of purl), so nothing is found. */
  readonly ecosystem: Ecosystem | null
  /** Whether no ecosystem is named, so that a package of this name in any of them is meant. */
  readonly isOfAny?: boolean
  /** As the ecosystem compares names; as it is given without one. */
  readonly name: string
  /** Empty: every record about the package, in any version. */
  readonly version: string
  /** Whether a version is looked for in the records' lists alone, and not in their ranges. */
  readonly isListedOnly?: boolean
  /** Of the module that an rpm was built for, as `Asked` has it. */
  readonly stream?: string | null
  readonly pageToken: string
}

/** Longest text in a query, in characters: far above any package, version or token. */
const MAX_TEXT = 1024

/**
 * Reads one query of osv.dev's API: a version and a package, by name and ecosystem or by purl. Fields with null count as
 * absent, unknown ones are passed over, names are taken in snake and in camel case, all as in protobuf's JSON. Throws
 * `bad_request` with osv.dev's own words; queries by commit are refused.
 */
export function readQuestion(query: unknown): Query {
  const fields = objectOf(query, 'a query')
  if (textOf(fields, 'commit') !== '')
    throw invalid('Queries by commit are not supported by this mirror: query by package and version instead.')
  const version = textOf(fields, 'version')
  const pageToken = textOf(fields, 'page_token') || textOf(fields, 'pageToken')
  const wanted = fields['package']
  if (wanted === undefined || wanted === null) throw invalid('Invalid query.')
  const { purl, name, ecosystem } = readPackage(objectOf(wanted, 'package'))
  if (purl !== '') return { ...byPurl(purl, name, ecosystem, version), pageToken }
  if (name === '') throw invalid('Invalid query.')
  if (ecosystem === '') return { ecosystem: null, isOfAny: true, name, version, pageToken }
  const known = findEcosystem(ecosystem)
  if (known === null) throw invalid('Invalid ecosystem.')
  return { ecosystem: known, name: normalName(known.base, name), version, pageToken }
}

function readPackage(fields: Readonly<Record<string, unknown>>) {
  return {
    purl: textOf(fields, 'purl'),
    name: textOf(fields, 'name'),
    ecosystem: textOf(fields, 'ecosystem'),
  }
}

function byPurl(text: string, name: string, ecosystem: string, version: string): Omit<Query, 'pageToken'> {
  const url = parsePurl(text)
  const purl = packageOf(url, version)
  if (name !== '') throw invalid('name specified in a PURL query')
  if (ecosystem !== '') throw invalid('ecosystem specified in a PURL query')
  if ((url.version ?? '') !== '' && version !== '') throw invalid('version specified in params and PURL query')
  if ('unrecorded' in purl) return { ecosystem: null, name: '', version }
  const known = findEcosystem(releaseIn(url, purl.ecosystem) ?? purl.ecosystem)
  const compared = normalName(known?.base ?? null, purl.name)
  return { ecosystem: known, name: compared, version: purl.version }
}

/** The object that a value of JSON should be; throws `bad_request` for anything else. */
export function objectOf(value: unknown, what: string): Readonly<Record<string, unknown>> {
  if (isObject(value)) return value
  throw invalid(`Invalid JSON payload received: ${what} must be an object.`)
}

function textOf(fields: Readonly<Record<string, unknown>>, name: string): string {
  const value = fields[name]
  if (value === undefined || value === null) return ''
  if (typeof value !== 'string') throw invalid(`Invalid JSON payload received: ${name} must be a string.`)
  if (value.length > MAX_TEXT) throw invalid(`Invalid query: ${name} is too long.`)
  return value
}

function invalid(message: string): MirrorError {
  return new MirrorError('bad_request', message)
}
