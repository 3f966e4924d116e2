import { withNames } from '../../../config/kinds/relay-targets.ts'
import { secretFilePath } from '../../../config/kinds/webhooks.ts'
import { closing } from '../../../base/closing.ts'
import { withReads } from '../../../store/reads.ts'
import { buildStatus } from '../../../server/status/status.ts'
import type { Status } from '../../../base/reports/status.ts'
import { servedSources } from '../../../base/domain/sources.ts'
import type { Config } from '../../../config/schema.ts'
import { MirrorError } from '../../../base/errors.ts'
import { databasePath, openInboxReader } from '../../../store/database/open.ts'
import { type RelayTarget, createOutboxReads } from '../../../store/webhooks/outbox.ts'
import { isUnreadable, lossAdvice, lostDatabase } from '../../../store/database/faults.ts'
import { isLocked, servingDaemon } from '../../../store/database/lock.ts'
import { lossBesideDaemon } from '../../../store/database/loss.ts'
import { probeStorage } from '../../../store/disk-state.ts'
import { VERSION } from '../../../base/version.ts'
import { faultOfSecretFile } from '../../../webhooks/receive/secret-file.ts'
import { statusOfDaemon } from '../../daemon-client.ts'
import { readWebhooks } from './webhooks.ts'

/** A report, and where it is from. */
export interface GatheredStatus {
  /** Null when nothing is stored. */
  readonly status: Status | null
  /** `stranger`: the daemon of another data folder answered, so it was read from the data folder. */
  readonly from: 'daemon' | 'folder' | 'stranger'
}

/** Returns the daemon's own report when one runs, else the same from the data folder. Throws `corrupt`, `schema`, `storage`. */
export async function gatherStatus(config: Config): Promise<GatheredStatus> {
  const answered = await statusOfDaemon(config)
  const own = answered === null ? readOwnStatus(config) : readOwnIfSound(config)
  if (answered === null) return { status: own, from: 'folder' }
  const { dir } = config.data
  const serving = servingDaemon(dir)?.instance ?? null
  const isOther = serving === null ? !isLocked(dir, 'serve') : serving !== answered.instance
  if (isOther) return { status: own, from: 'stranger' }
  return { status: withLoss(withOwnRuns(answered, own), dir), from: 'daemon' }
}

/** Returns the report with what to do about a lost database: the daemon has that in its log alone, since no client can do it. */
function withLoss(status: Status, dataDir: string): Status {
  const loss = status.storage.state === 'damaged' ? lossBesideDaemon(dataDir) : null
  if (loss === null) return status
  const reason = `mirror.db is damaged (${lostDatabase(databasePath(dataDir), loss).message}). ${lossAdvice(dataDir, loss)}`
  return { ...status, storage: { ...status.storage, reason } }
}

/** Returns the daemon's report with the messages of runs and the relay's targets from the data folder: the daemon leaves private ones out. */
function withOwnRuns(asked: Status, own: Status | null): Status {
  const sources = asked.sources.map((source) => {
    const same = own?.sources.find(({ name }) => name === source.name)
    if (same === undefined || same.lastRun?.id !== source.lastRun?.id) return source
    const { lastRun, wrongRun, partialLists, unprovedLists } = same
    return { ...source, lastRun, wrongRun, partialLists, unprovedLists }
  })
  // A name may be in the settings of the daemon alone.
  const relay = (own?.relay ?? []).map((one) => {
    const named = asked.relay.find(({ id }) => id === one.id)
    return { ...one, name: named?.name ?? one.name }
  })
  return { ...asked, sources, relay: relay.length === 0 ? asked.relay : relay } // none where the file is damaged
}

/** The same beside a daemon that answers: its report says that the folder is damaged, so that is no error here. */
function readOwnIfSound(config: Config): Status | null {
  try {
    return readOwnStatus(config)
  } catch (error) {
    if (!isUnreadable(error)) throw error
    return null
  }
}

/** Reads the report from the data folder; null when there is none. */
function readOwnStatus(config: Config): Status | null {
  const { data } = config
  return withReads(data.dir, (reads) => {
    const webhooks = readWebhooks(config, reads)
    const status = buildStatus({
      reads,
      active: servedSources(config, (source) => reads.snapshots.readSnapshot(source) !== null),
      version: VERSION,
      config,
      startedAt: null,
      now: Date.now,
      nextRunAt: () => null,
      storage: () => probeStorage(data.dir, false),
      secretFaults: () => faultsOfKept(config),
      relayTargets: () => withNames(readTargets(data.dir), config.relay),
    })
    return webhooks === null ? status : { ...status, webhooks }
  })
}

/** Returns what is wrong with the file of webhook secrets; files that settings name are warned of as the settings are read. */
function faultsOfKept(config: Config): NonNullable<Status['secretFaults']> {
  const fault = faultOfSecretFile(secretFilePath(config))
  return fault === null ? [] : [{ key: config.webhooks.secretFile, fault }]
}

/** Returns the targets of the relay; none when the file is damaged: that ends no report on everything else. */
function readTargets(dataDir: string): RelayTarget[] {
  try {
    const db = openInboxReader(dataDir)
    return db === null ? [] : closing(db, () => createOutboxReads(db).listTargets())
  } catch (error) {
    if (error instanceof MirrorError) return []
    throw error
  }
}
