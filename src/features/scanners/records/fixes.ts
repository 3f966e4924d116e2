import { type Fields, eachObject } from '../../../base/json/objects.ts'
import { recordedPackage } from '../../../base/identity/recorded.ts'
import type { Steps } from '../../../base/pacing.ts'
import { type Asked, type OsvRecord, isAffected, orderFor } from './affected.ts'
import { createPace } from './ranges.ts'
import { type Severity, severityOf } from '../../../documents/records/severity.ts'
import type { VersionOrder } from '../../../base/versions/order.ts'
import { orderOfType } from '../../../base/versions/semver.ts'

/** What a record says about a package whose version it affects. */
interface Remedy {
  /** Fixed versions above the version, in the order of versions. Empty: the record names none. */
  readonly fixed: readonly string[]
  /** Ecosystems of the elements of `affected` that the version is in, as `recordedPackage` has them. */
  readonly ecosystems: readonly string[]
  /** As the record states it, else these elements: others are about other packages and releases. */
  readonly severity: Severity
}

/**
 * Returns the fixed versions above a version and the severity, from those elements of `affected` that the version is in. A fix
 * that cannot be compared with the version is left out. `vendor`: as for `concerns`.
 */
export function remedyFor(record: OsvRecord, asked: Asked, vendor?: string): Remedy {
  const fixes = new Map<string, Fix>()
  const ecosystems = new Set<string>()
  const within: Fields[] = []
  for (const affected of eachObject(record.affected)) {
    const own = orderFor(record, affected, asked, vendor)
    if (own === undefined) continue
    const verdict = runToEnd(isAffected(affected, asked.version, own, createPace()))
    if (verdict !== 'affected') continue
    ecosystems.add(recordedPackage(affected)?.ecosystem ?? '') // else it was not this package
    within.push(affected)
    for (const { type, events } of eachObject(affected['ranges'])) {
      const order = orderOfType(type, own)
      if (order === null) continue
      for (const { fixed } of eachObject(events)) addAbove(fixes, fixed, order, asked)
    }
  }
  const sorted = [...fixes].sort(([, one], [, other]) =>
    one.order === other.order ? one.order.compare(one.key, other.key) : 0,
  )
  const severity = severityOf({ ...record, affected: within })
  return { fixed: sorted.map(([text]) => text), ecosystems: [...ecosystems], severity }
}

interface Fix {
  readonly order: VersionOrder
  readonly key: unknown
}

function addAbove(fixes: Map<string, Fix>, fixed: unknown, order: VersionOrder, { version }: Asked): void {
  const asked = version.text === '' ? null : version.keyOf(order)
  const key = typeof fixed === 'string' && fixed !== '' ? order.read(fixed) : null
  if (asked === null || key === null || order.compare(key, asked) <= 0) return
  fixes.set(String(fixed), { order, key })
}

function runToEnd<Value>(steps: Steps<Value>): Value {
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
  }
}
