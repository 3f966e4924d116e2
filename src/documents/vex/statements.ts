import { type Fields, eachObject, fieldsOf, jsonTextOf } from '../../base/json/objects.ts'
import { MAX_VALUES, countValues } from '../../base/json/values.ts'
import { envelopesOf } from '../sboms/envelopes.ts'
import { textOr, unreadable } from '../sboms/sbom.ts'
import { readCsafStatements } from './csaf-statements.ts'
import { readAnalyses } from './cyclonedx.ts'
import { readOpenStatements } from './openvex.ts'
import type { Statement } from './statement.ts'

/**
 * Reads the statements of OpenVEX, CycloneDX and CSAF, also in an envelope, whose signature is not checked; null for anything
 * else.
 */
export function readStatements(bytes: Buffer): Statement[] | null {
  try {
    const about = new Set<string>()
    for (const document of envelopesOf(parse(bytes), (text) => parse(Buffer.from(text)))) {
      for (const digest of digestsAttested(document)) about.add(digest)
      const statements = statementsIn(document)
      if (statements === null) continue
      return about.size === 0 ? statements : statements.map((one) => ({ ...one, about: [...about] }))
    }
  } catch {
    // No JSON, too many values, or an envelope around either.
  }
  return null
}

/** Returns the statements of a document without an envelope; null for another format. */
function statementsIn(document: Fields): Statement[] | null {
  const context = textOr(document['@context'])
  if (context.includes('openvex')) return readOpenStatements(document)
  if (document['bomFormat'] === 'CycloneDX') return readAnalyses(document)
  const { csaf_version: csaf } = fieldsOf(document['document'])
  return textOr(csaf) === '' ? null : readCsafStatements(document)
}

/** Returns the digests that an in-toto statement is about; none of anything else. */
export function digestsAttested({ _type: type, subject }: Fields): string[] {
  if (!textOr(type).startsWith('https://in-toto.io/Statement/')) return []
  const named = eachObject(subject).flatMap(({ digest }) => Object.entries(fieldsOf(digest)))
  return named.map(([kind, hex]) => `${kind}:${textOr(hex)}`.toLowerCase())
}

function parse(bytes: Buffer): Fields {
  if (countValues(bytes) > MAX_VALUES) throw unreadable(`it has more than ${MAX_VALUES} values`)
  return fieldsOf(JSON.parse(jsonTextOf(bytes)))
}
