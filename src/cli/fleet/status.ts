import { ageSecondsOf } from '../../domain/sources.ts'
import { FLEET_PAUSED } from '../../domain/status.ts'
import { findNewest, readGeneration } from '../../fleet/generations/chain.ts'
import { isUnreleased } from '../../fleet/generations/rollback-state.ts'
import { type Lease, fetchLease } from '../../fleet/lease/lease.ts'
import { type ReaderReport, listReaders } from '../../fleet/readers.ts'
import { type GlobalOptions, print, printJson } from '../context.ts'
import { duration, table } from '../output.ts'
import { mirrorName, withFleetStore } from './fleet-store.ts'

/** `patchmirror fleet status`: the newest generation, the lease, and what each mirror of the fleet said last. */
export async function fleetStatusCommand(
  options: GlobalOptions & { json?: boolean },
): Promise<number> {
  return withFleetStore(options, async ({ store, trust }) => {
    const number = await findNewest(store, 0)
    const newest = number === 0 ? null : await readGeneration(store, number, trust)
    const [lease] = await fetchLease(store)
    const paused = newest !== null && (await isUnreleased(store, newest.generation))
    const mirrors = await listReaders(store)
    const {
      generation,
      publishedAt,
      epoch,
      mirror,
      name = null,
      sources = {},
    } = newest?.generation ?? {}
    if (options.json === true) {
      const shown = newest && { generation, publishedAt, epoch, mirror, name, sources }
      const { token: _token, ...leader } = lease ?? { token: null }
      printJson({ store: store.url, newest: shown, paused, lease: lease && leader, mirrors })
      return 0
    }
    if (newest === null) print(`${store.url} has no generation yet`)
    else {
      const counts = Object.entries(sources).map(([name, { records }]) => `${name} ${records}`)
      print(
        `generation ${generation}  published ${publishedAt} by ${mirrorName(newest.generation)} (epoch ${epoch})  ${counts.join('  ')}`,
      )
    }
    if (paused) print(FLEET_PAUSED)
    print(
      lease === null
        ? 'lease: none'
        : `lease: ${lease.name}, epoch ${lease.epoch}, ${lease.released ? 'given back' : `until ${lease.expiresAt}`}`,
    )
    if (mirrors.length > 0) print(tableOf(mirrors, lease))
    return 0
  })
}

function tableOf(mirrors: readonly ReaderReport[], lease: Lease | null): string {
  const rows = mirrors.map(({ name, site, generation, lagSeconds, version, role, leads, at }) => [
    ...[name, site ?? '-', String(generation), lagSeconds === null ? '-' : `${lagSeconds} s`],
    ...[version, leads ? leaderOrFormer(name, lease) : role],
    agoOf(at),
  ])
  return table(['mirror', 'site', 'generation', 'lag', 'version', 'role', 'last report'], rows)
}

function agoOf(at: string): string {
  const seconds = ageSecondsOf(Date.parse(at), Date.now())
  return seconds === null ? `${at}, later than this clock` : `${duration(seconds)} ago`
}

/** A mirror that was killed while it led still says so in its last report: the lease says who leads. */
function leaderOrFormer(name: string, lease: Lease | null): string {
  return lease === null || (lease.name === name && !lease.released) ? 'leader' : 'former leader'
}
