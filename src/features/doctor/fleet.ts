import { messageOf } from '../../base/errors.ts'
import { toIso } from '../../base/time.ts'
import { fleetTrust } from '../bundles/format/keys.ts'
import { inspectStore } from '../fleet/generations/inspect.ts'
import { type StoredLease, endOf, fetchLease } from '../fleet/lease/lease.ts'
import { openObjectStore } from '../fleet/objects/open-store.ts'
import { type Finding, failure, fine, skipped, warning, worst } from './check.ts'
import { listedFindings } from './listed.ts'
import type { Examined } from './world.ts'

/** Looks whether the newest generation can be read and is trusted, the store lost nothing that is known, and a mirror leads. */
export async function fleetStore({ world, config }: Omit<Examined, 'probe'>): Promise<Finding> {
  const { fleet } = config
  if (fleet.url === null) return skipped('fleet.url is not set')
  const objects = await openObjectStore(fleet)
  try {
    const { newest, doubts } = await inspectStore(objects, fleetTrust(config, world.now), config.data.dir)
    const lease = await fetchLease(objects)
    const found =
      newest === null
        ? warning(
            `${objects.url} has no generation`,
            'Start a mirror with fleet.role writer or auto, and an upstream; readers are not ready before.',
          )
        : fine(`${objects.url} has generation ${newest.generation.generation} of ${newest.generation.publishedAt}`)
    const lost = doubts.map((doubt) => failure(doubt, 'The message says what to do.'))
    return worst([...lost, leadership(lease, fleet.soleWriter, world.now()), found], found)
  } catch (error) {
    const action =
      'Check fleet.url, its credentials, the network and the trusted keys; "patchmirror fleet check" tries each thing that a fleet needs of the store.'
    return failure(`${objects.url}: ${messageOf(error)}`, action)
  } finally {
    objects.close()
  }
}

/** Whether the lease names a mirror that leads now, by the clock of this machine. */
function leadership({ lease, writtenAt }: StoredLease, isSoleWriter: boolean, now: number): Finding {
  if (isSoleWriter) return skipped('fleet.role is sole-writer: there is no lease')
  const action =
    'Start a mirror with fleet.role auto or writer; a running standby takes over by itself. Until then nothing new is published, and all readers serve what they have.'
  if (lease === null || lease.released) return warning('no mirror leads the fleet', action)
  const end = endOf(lease, writtenAt)
  if (end + lease.seconds * 1000 > now) return fine(`${lease.name} leads`)
  return warning(
    `no mirror leads the fleet, if the clock here is right: the lease of ${lease.name} ended at ${toIso(end)}`,
    action,
  )
}

/** Returns what the daemon says of itself as a member of the fleet. */
export async function member({ world, config }: Examined): Promise<Finding> {
  if (config.fleet.url === null) return skipped('fleet.url is not set')
  const status = await world.readStatus(config)
  const state = status?.fleet ?? null
  if (state === null) return skipped('no daemon of this data folder is running')
  const { seen, served, name, leads, role } = state
  const findings = listedFindings(world, config, status, 'fleet')
  return worst(findings, fine(`generation ${served} of ${seen} is served by ${name} (${leads ? 'leader' : role})`))
}
