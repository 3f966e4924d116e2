import { ecosystemsWithout } from '../../base/domain/osv-scope.ts'
import { X509Certificate } from 'node:crypto'
import { accessSync, constants, existsSync, statSync } from 'node:fs'
import type { Config } from '../../config/schema.ts'
import { watchedTag } from '../../config/kinds/inbox.ts'
import { secretFilePath } from '../../config/kinds/webhooks.ts'
import { HIDE_KEYS, warnOfPlainKeys } from '../../config/rules/plain-keys.ts'
import { readCertificate } from '../../base/certificate.ts'
import { MirrorError, messageOf, systemCode } from '../../base/errors.ts'
import { describeUnread } from '../../base/domain/status.ts'
import { DAY_MS } from '../../base/time.ts'
import { readPublicKey, readSigningKeys } from '../bundles/format/keys.ts'
import { readCurrentViews, unreadVexIn } from '../scanners/store/generations.ts'
import { createViewsInUse } from '../scanners/routes/generation.ts'
import { checkViews } from '../scanners/views/check.ts'
import { type Finding, failure, fine, skipped, warning, worst } from './check.ts'
import { listedFindings } from './listed.ts'
import type { Examined } from './world.ts'
import { readNamedFile } from '../../base/files.ts'

/** Looks whether the folders of bundles can be used. */
export async function boxes({ world, config }: Examined): Promise<Finding> {
  const { inbox, outbox } = config.bundle
  const tag = watchedTag(config.bundle)
  const named = [
    { setting: 'bundle.inbox', path: tag === null ? inbox : null },
    { setting: 'bundle.outbox', path: outbox },
  ]
  const findings = named.flatMap(({ setting, path }): Finding[] => {
    if (path === null) return []
    const fault = folderFault(path)
    if (fault === null) return [fine(`${path} (${setting}) can be read and written`)]
    const first = fault === GONE ? 'Mount its medium, or make' : 'Make'
    const action = `${first} ${setting} a folder that this user may read and write.`
    return [failure(`${path} (${setting}) ${fault}`, action)]
  })
  if (tag !== null)
    findings.push(fine(`${inbox} (bundle.inbox) is not asked here: the daemon does, "bundle inspect" of it can`))
  const status = await world.readStatus(config)
  findings.push(...listedFindings(world, config, status, 'boxes'))
  return worst(findings, skipped('neither bundle.inbox nor bundle.outbox is set'))
}

const GONE = 'does not exist'

function folderFault(path: string): string | null {
  try {
    if (!statSync(path).isDirectory()) return 'is not a folder'
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK)
    return null
  } catch (error) {
    const code = systemCode(error)
    return code === 'ENOENT' ? GONE : `cannot be read and written (${code ?? 'unknown'})`
  }
}

/** How long before its end a certificate is reported. */
const SOON_MS = 14 * DAY_MS

/** Looks at the files of keys and certificates, and at the keys of bundles. */
export async function keys({ world, config }: Examined): Promise<Finding> {
  const { bundle, server, webhooks, secretFiles = {} } = config
  const files = [
    ...bundle.signingKeys,
    server.keyFile ?? [],
    webhooks.keyFile ?? [],
    Object.values(secretFiles),
    secretFilePath(config),
  ].flat()
  const findings = files.filter((path) => existsSync(path)).flatMap(openKey)
  for (const section of ['server', 'webhooks'] as const)
    findings.push(...certificate(config[section], section, world.now()))
  findings.push(...listedFindings(world, config, await world.readStatus(config), 'keys'))
  const plain = warnOfPlainKeys(config)
  if (plain !== null) findings.push(warning(plain, HIDE_KEYS))
  const trusted = bundle.trustedKeys.map((given) => readPublicKey(given).id)
  const signing = readSigningKeys(bundle.signingKeys).map(({ id }) => id)
  const revoked = signing.filter((id) => bundle.revokedKeys.includes(id))
  if (revoked.length > 0)
    findings.push(
      failure(
        `bundles are signed with the revoked key ${revoked.join(', ')}`,
        'Make another with "patchmirror bundle keygen FILE", name it in bundle.signingKeys, and have it trusted by the target mirrors.',
      ),
    )
  const valid = trusted.filter((id) => !bundle.revokedKeys.includes(id))
  if (trusted.length > 0 && valid.length === 0)
    findings.push(
      failure(
        'every trusted key is revoked, so each bundle is refused',
        'Add the public key of the source mirror to bundle.trustedKeys.',
      ),
    )
  const counts = `bundles are signed by ${signing.join(', ') || 'no key'}, trusted: ${valid.join(', ') || 'no key'}`
  if (files.length === 1 && !existsSync(secretFilePath(config)) && trusted.length === 0)
    return worst(findings, skipped('no key, certificate or secret file is used'))
  return worst(findings, fine(counts))
}

/** Reports a file with a secret that others may replace. Being readable for all is usual where a container mounts it. */
function openKey(path: string): Finding[] {
  if ((statSync(path).mode & 0o022) === 0) return []
  const found = `other users of this machine may change ${path}, which contains a secret`
  return [warning(found, `Run: chmod go= ${path}`)]
}

function certificate(
  { certFile, keyFile }: Config['server'] | Config['webhooks'],
  section: 'server' | 'webhooks',
  now: number,
): Finding[] {
  if (certFile === null) return []
  const names = `${section}.certFile`
  const found = `the certificate ${certFile} (${names})`
  if (keyFile !== null)
    try {
      readCertificate({ certFile, keyFile }, section)
    } catch (error) {
      const action = `Give ${names} and ${section}.keyFile the files of one pair; a running daemon uses the one it read before.`
      return [failure(messageOf(error), action)]
    }
  const { validTo } = new X509Certificate(readNamedFile(certFile))
  const left = Date.parse(validTo) - now
  const action = 'Renew it: a running daemon takes changed files within a minute.'
  if (left <= 0) return [failure(`${found} has expired: it was valid to ${validTo}`, action)]
  const valid = `${found} is valid to ${validTo}`
  return [left < SOON_MS ? warning(valid, action) : fine(valid)]
}

/** Looks whether what scanners read is there and sound. */
export async function views({ world, config }: Examined): Promise<Finding> {
  if (!config.views.bucket && !config.views.vex && !config.views.query) return skipped('views are switched off')
  const repair = 'Build them again: "patchmirror doctor --data --repair".'
  const faults = checkViews(config.data.dir)
  if (faults.length > 0) return failure(faults.map(({ kind, fault }) => `${kind}: ${fault}`).join('; '), repair)
  const status = await world.readStatus(config)
  if (status === null) return skipped('nothing is mirrored yet')
  const listed = listedFindings(world, config, status, 'views')
  const [first] = listed
  if (first !== undefined) return worst(listed, first)
  const unread = config.views.vex ? unreadVexIn(config.data.dir).length : 0
  if (unread > 0) return warning(`Views (vex): ${describeUnread(unread)}`, repair)
  const built = (['osv', 'vex'] as const).filter((kind) => readCurrentViews(config.data.dir, kind))
  if (built.length === 0) return skipped('none are built yet: a running daemon builds them')
  const found =
    status.views === undefined
      ? `no damage found in those of ${built.join(' and ')}`
      : status.views.map(({ kind, state }) => `${kind}: ${state}`).join(', ')
  return fine([found, ...scopeNotes(config)].join('; '))
}

/** Notes ecosystems of `osv.scope` that no mirrored record names. It is no fault: upstream may have none yet. */
function scopeNotes({ osv, views: { vendors }, data }: Config): string[] {
  const inUse = createViewsInUse(data.dir, null, null)
  try {
    const without = ecosystemsWithout({ ...osv, vendors }, inUse.current().listEcosystems())
    return without.length === 0 ? [] : [`osv.scope names ${without.join(', ')}, of which these views have no record`]
  } catch (error) {
    if (error instanceof MirrorError && error.code === 'not_ready') return []
    throw error
  } finally {
    inUse.close()
  }
}
