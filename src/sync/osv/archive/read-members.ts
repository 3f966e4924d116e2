import { sha256Of } from '../../../base/digest.ts'
import { MirrorError } from '../../../base/errors.ts'
import { namesFix } from '../../../base/domain/named-fix.ts'
import { type OsvScope, type ScopeSettings, createOsvScope } from '../../../base/domain/osv-scope.ts'
import { TRANSFER_BYTES, type SendChunk } from '../../../base/threads/chunks.ts'
import { type SecretSearch, createSecretSearch } from '../../../upstream/secret-search.ts'
import type { Directory } from '../../../archive/zip/directory.ts'
import type { Content, ZipFault } from '../../../archive/zip/member.ts'
import type { ArchiveReader } from '../../../archive/zip/reader.ts'
import { identify } from '../record.ts'
import { type MemberToWrite, createCheckedWriter } from './checked.ts'

/** Which members are read, and how they are checked. Survives a structured clone. */
export interface ReadingTask {
  /** Numbers of the members in the archive's directory, in the order in which they are passed on. */
  readonly numbers: Uint32Array
  /** Credentials that no record may contain. */
  readonly secrets: readonly string[]
  readonly scope: ScopeSettings
}

/** Ending of the name of a record's member. */
export const RECORD_ENDING = '.json'

/** Reads members, checks each, and sends them in chunks (`eachChecked`). */
export async function readRecords(
  reader: ArchiveReader,
  { numbers, secrets, scope }: ReadingTask,
  send: SendChunk,
): Promise<void> {
  const checks = { search: createSecretSearch(() => secrets), scope: createOsvScope(scope) }
  const writer = createCheckedWriter(new Uint8Array(TRANSFER_BYTES), send)
  await reader.readNumbered(numbers, (entry, member) => {
    const id = entry.name.slice(0, -RECORD_ENDING.length)
    return writer.add(checkMember(id, entry.crc32, member, checks))
  })
  await writer.flush()
}

interface Checks {
  readonly search: SecretSearch
  readonly scope: OsvScope | null
}

function checkMember(id: string, crc32: number, member: Content | ZipFault, { search, scope }: Checks): MemberToWrite {
  if ('refused' in member) return { kind: 'refused', reason: member.refused }
  const { content, deflated } = member
  // Archive members are compressed: a reflected credential can only be found here, after inflation.
  const fault = secretIn(search, content, id)
  if (fault !== null) return { kind: 'refused', reason: fault }
  const identity = identify(content, id)
  if (typeof identity === 'string') return { kind: 'refused', reason: identity }
  const kind = scope === null || scope.includes(id, identity.record) ? 'record' : 'outside'
  const sums = { crc32, size: content.length, sha256: sha256Of(content) }
  const facts = { own: identity.modified, ...sums, fix: namesFix(content) }
  return { kind, ...facts, deflated }
}

function secretIn(search: SecretSearch, content: Buffer, id: string): string | null {
  try {
    search.check(content, id)
    return null
  } catch (error) {
    if (!(error instanceof MirrorError)) throw error
    return error.message
  }
}

/** Returns whether members have at least this number of compressed bytes together. */
export function haveBytes(directory: Pick<Directory, 'compressedSize'>, numbers: Uint32Array, least: number): boolean {
  let bytes = 0
  for (let i = 0; i < numbers.length && bytes < least; i++) bytes += directory.compressedSize(numbers[i] ?? 0)
  return bytes >= least
}
