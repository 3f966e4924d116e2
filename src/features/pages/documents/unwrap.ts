import { type Fields, fieldsOf, isObject } from '../../../base/json/objects.ts'
import { MAX_VALUES, countValues } from '../../../base/json/values.ts'

/** Bounds on what is looked through: depth of envelopes, values of a list, members of an object. */
const MAX_DEPTH = 8
const MAX_LISTED = 1000
const MAX_MEMBERS = 50

/** Members that contain a statement or an envelope of one; the first of them that leads to a statement is used. */
const WRAPPERS = [
  ...['dsseEnvelope', 'envelope', 'bundle', 'attestations', 'provenance_summary', 'provenance'],
  ...['build', 'inTotoSlsaProvenanceV1', 'intotoStatement'],
]

/**
 * Returns the in-toto statements of a document: bare, in DSSE envelopes, in Sigstore bundles, or in lists of these.
 * Signatures are not verified.
 */
export function statementsIn(value: unknown, depth = 0): Fields[] {
  if (depth > MAX_DEPTH) return []
  if (Array.isArray(value))
    return (value as unknown[]).slice(0, MAX_LISTED).flatMap((one) => statementsIn(one, depth + 1))
  if (!isObject(value)) return []
  const { _type: type, payload } = value
  if (typeof type === 'string' && type.startsWith('https://in-toto.io/Statement')) return [value]
  if (typeof payload === 'string') return statementsIn(payloadOf(payload), depth + 1)
  for (const name of WRAPPERS) {
    const found = statementsIn(value[name], depth + 1)
    if (found.length > 0) return found
  }
  return []
}

/** Returns the JSON of a DSSE payload (base64); null where it is none, or too much. */
function payloadOf(payload: string): unknown {
  return parseBounded(Buffer.from(payload, 'base64'))
}

/** Returns what a statement is about, under the names that services use for it. */
export function predicateOf(statement: Fields): Fields {
  const { predicate, slsaProvenance, provenance } = statement
  return fieldsOf(predicate ?? slsaProvenance ?? provenance)
}

/**
 * Returns the objects of a document that `accepts`: the document itself, members of it, or the contents of the
 * statements in it.
 */
export function contentsIn(value: unknown, accepts: (fields: Fields) => boolean): Fields[] {
  const values: unknown[] = Array.isArray(value) ? value.slice(0, MAX_LISTED) : [value]
  return values.flatMap((one) => {
    if (!isObject(one)) return []
    if (accepts(one)) return [one]
    const members = Object.values(one).slice(0, MAX_MEMBERS)
    const inside = [
      ...members,
      ...statementsIn(one).flatMap((statement) => {
        const predicate = predicateOf(statement)
        const { Data: data } = predicate
        return [predicate, typeof data === 'string' ? parseBounded(Buffer.from(data)) : data]
      }),
    ]
    return inside.filter(isObject).filter(accepts)
  })
}

function parseBounded(content: Buffer): unknown {
  if (countValues(content) > MAX_VALUES) return null
  try {
    return JSON.parse(content.toString('utf8'))
  } catch {
    return null
  }
}
