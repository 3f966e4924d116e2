import { type Fields, fieldsOf, jsonTextOf } from '../json/objects.ts'
import { MAX_VALUES, countValues } from '../json/values.ts'
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
    for (const document of envelopesOf(parse(bytes), (text) => parse(Buffer.from(text)))) {
      const context = textOr(document['@context'])
      if (context.includes('openvex')) return readOpenStatements(document)
      if (document['bomFormat'] === 'CycloneDX') return readAnalyses(document)
      const { csaf_version: csaf } = fieldsOf(document['document'])
      if (textOr(csaf) !== '') return readCsafStatements(document)
    }
  } catch {
    // No JSON, too many values, or an envelope around either.
  }
  return null
}

function parse(bytes: Buffer): Fields {
  if (countValues(bytes) > MAX_VALUES) throw unreadable(`it has more than ${MAX_VALUES} values`)
  return fieldsOf(JSON.parse(jsonTextOf(bytes)))
}
