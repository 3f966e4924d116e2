import { statSync } from 'node:fs'
import { type PublicKey, readPublicKey, readSigningKeys } from '../format/keys.ts'
import type { Manifest } from '../format/manifest.ts'
import { WITHHELD_COUNT, isWithheld } from '../format/withheld.ts'
import { manifestSources } from '../import/admission.ts'
import { type Bundle, inspectBundle } from '../import/open.ts'
import { isThin } from '../thin/format.ts'
import { inspectThin } from '../thin/whole.ts'
import { groupFiles } from '../format/split-names.ts'
import { shownBytes } from '../../../base/disk-space.ts'
import type { Claims } from '../import/envelope.ts'
import { MirrorError, messageOf } from '../../../base/errors.ts'
import { readReference } from '../../../config/kinds/oci-reference.ts'
import { type NameFiles, withBundleFiles } from './artifacts.ts'
import { orFailed } from './files.ts'
import { showIdentity } from './identity.ts'
import { createBundleProgress } from '../../../cli/progress.ts'
import { type GlobalOptions, print, printJson, settings } from '../../../cli/context.ts'
import { table } from '../../../cli/output.ts'

/** Options of `patchmirror bundle inspect`. */
interface InspectOptions extends GlobalOptions {
  verify?: boolean
  json?: boolean
}

/** Result of checking a signature against the keys of this mirror. */
interface Signer {
  key: string
  state: 'trusted' | 'own' | 'revoked' | 'unknown' | 'wrong'
}

/** What is known of the keys on this machine. */
interface Known {
  keys: readonly PublicKey[]
  /** Those that sign here. */
  own: readonly PublicKey[]
  revoked: readonly string[]
}

/**
 * `patchmirror bundle inspect FILE…`: prints a bundle's own statements. It verifies no origin and needs neither data folder nor
 * trusted keys: exits with 0 when the structure is valid (with --verify: every byte), 1 when not. Of several bundles one that is
 * refused takes nothing from the others.
 */
export async function inspectCommand(files: readonly string[], options: InspectOptions): Promise<number> {
  if (files.length === 0) {
    if (options.verify === true) throw new MirrorError('usage', '--verify reads a bundle: name its file')
    return showIdentity(options)
  }
  const isArtifact = files.some((file) => readReference(file) !== null)
  if (!isArtifact) return inspectFiles(groupFiles(files), options)
  const { config } = settings(options, false, ['bundle.trustedKeys'])
  return withBundleFiles(files, config, options, (local, named) => inspectFiles(groupFiles(local), options, named))
}

async function inspectFiles(
  groups: readonly string[][],
  options: InspectOptions,
  named: NameFiles = (text) => text,
): Promise<number> {
  const known = knownKeys(options)
  const { json = false, verify: verified = false } = options
  const look = async (group: readonly string[]): Promise<Seen> => {
    const bundle = await inspected(group)
    try {
      if (verified) await verify(bundle, options)
      const signers = signersOf(bundle.claims, known)
      const shown = group.map(named)
      return { json: facts(shown, bundle, signers, verified), lines: describe(shown, bundle, signers, verified) }
    } finally {
      await bundle.close()
    }
  }
  const found: object[] = []
  let isAnyRefused = false
  for (const group of groups) {
    const seen = await orFailed(groups.length, () => look(group))
    isAnyRefused ||= 'failed' in seen
    if ('lines' in seen) {
      found.push(seen.json)
      for (const line of json ? [] : seen.lines) print(line)
    } else {
      const message = named(seen.message)
      found.push({ files: group.map(named), ...seen, message })
      if (!json) process.stderr.write(`patchmirror: not shown: ${message}\n`)
    }
  }
  if (json) printJson(found.length === 1 ? found[0] : found)
  return isAnyRefused ? 1 : 0
}

/** What a bundle says, in both forms. */
interface Seen {
  readonly json: object
  readonly lines: readonly string[]
}

/** What is shown of a bundle. */
type Inspected = Pick<Bundle, 'manifest' | 'bytes' | 'verify' | 'close'> & { readonly claims: Claims }

/** A thin bundle says what it is without its base; its bytes are proved by an import alone. */
function inspected(group: readonly string[]): Promise<Inspected> {
  const [file = ''] = group
  if (group.length > 1 || !isThin(file)) return inspectBundle(group)
  const { manifest, claims } = inspectThin(file)
  const verify = (): never => {
    throw new MirrorError(
      'usage',
      `${file} is a thin bundle, which its import proves: --verify reads whole ones. "patchmirror bundle import --dry-run" on the target mirror proves it`,
    )
  }
  return Promise.resolve({ manifest, claims, bytes: statSync(file).size, verify, close: () => Promise.resolve() })
}

async function verify(bundle: Inspected, { json }: InspectOptions): Promise<void> {
  const display = createBundleProgress(json === true)
  await bundle
    .verify((done, total) => display.show({ phase: 'verify', unit: 'bytes', done, total }))
    .finally(() => display.finish())
}

/** Settings that cannot be read are no reason not to look into a file. */
function knownKeys(options: GlobalOptions): Known {
  try {
    const { bundle } = settings(options, false, ['bundle.trustedKeys']).config
    return {
      keys: bundle.trustedKeys.map(readPublicKey),
      own: readSigningKeys(bundle.signingKeys),
      revoked: bundle.revokedKeys,
    }
  } catch (error) {
    process.stderr.write(`patchmirror: warning: no key is known here: ${messageOf(error)}\n`)
    return { keys: [], own: [], revoked: [] }
  }
}

function signersOf({ manifest, signatures }: Claims, { keys, own, revoked }: Known): Signer[] {
  return [...signatures].map(([key, signature]) => {
    const trusted = keys.find(({ id }) => id === key)
    const known = trusted ?? own.find(({ id }) => id === key)
    if (known !== undefined && !known.verifies(manifest, signature)) return { key, state: 'wrong' }
    if (revoked.includes(key)) return { key, state: 'revoked' }
    if (trusted !== undefined) return { key, state: 'trusted' }
    return { key, state: known === undefined ? 'unknown' : 'own' }
  })
}

const STATES: Record<Signer['state'], string> = {
  trusted: 'trusted here, and the signature fits',
  own: 'a key that signs here, and the signature fits',
  revoked: 'REVOKED here',
  unknown: 'not in bundle.trustedKeys here, so not checked',
  wrong: 'the signature does NOT FIT: the manifest was changed after signing',
}

function describe(
  group: readonly string[],
  { manifest, bytes }: Inspected,
  signers: readonly Signer[],
  verified: boolean,
): string[] {
  const { kind, mirror, sequence, base, createdAt, expiresAt, program, digest, members } = manifest
  const expired = expiresAt !== null && Date.parse(expiresAt) <= Date.now()
  const facts: [string, string][] = [
    ['bundle', group.join(' ')],
    ['kind', base === null ? kind : `${kind} since ${base.sequence ?? 'a need file'}`],
    ['mirror', mirror],
    ['sequence', String(sequence)],
    ['made', `${createdAt} by ${program}`],
    ['expires', `${expiresAt ?? 'never'}${expired ? ' (EXPIRED)' : ''}`],
    ['digest', digest],
    ['members', `${members.length}, ${shownBytes(bytes)}`],
    ['bytes', verified ? 'all match the manifest' : 'not read (--verify reads them)'],
  ]
  const signed = signers.map(({ key, state }): [string, string] => ['signed by', `${key}: ${STATES[state]}`])
  if (signed.length === 0) signed.push(['signed by', 'no key: its origin cannot be verified'])
  return [
    ...[...facts, ...signed].map(([name, value]) => `${`${name}:`.padEnd(11)}${value}`),
    '',
    ...sourceTable(manifest),
    '',
    ...countTable(manifest),
  ]
}

function sourceTable({ sources, counts }: Manifest): string[] {
  const rows = manifestSources({ sources }).map(([name, { asOf, records, whole, snapshot }]) => {
    const state = `${whole ? 'whole' : 'PARTIAL'}${isWithheld({ counts }, name) ? ', NEWER WITHHELD' : ''}`
    return [name, asOf, String(records), state, snapshot.slice(0, 12)]
  })
  return [table(['source', 'as of', 'records', 'state', 'snapshot'], rows)]
}

function countTable({ counts }: Manifest): string[] {
  const shown = Object.entries(counts).filter(([kind]) => !kind.startsWith(WITHHELD_COUNT)) // the sources say it
  const rows = shown.map(([kind, count]) => {
    return [kind, String(count?.put ?? 0), String(count?.removed ?? 0)]
  })
  return rows.length === 0 ? ['no rows: nothing changed'] : [table(['rows', 'put', 'removed'], rows)]
}

function facts(
  files: readonly string[],
  { manifest, bytes }: Inspected,
  signers: readonly Signer[],
  verified: boolean,
): object {
  const { members, ...rest } = manifest
  return { files, bytes, ...rest, members: members.length, signatures: signers, verified }
}
