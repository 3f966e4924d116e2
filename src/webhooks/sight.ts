import type { Announced } from '../store/announced.ts'
import type { Visibility } from './coalesce-verdict.ts'
import { type EventTarget, namesOf } from '../event-target.ts'

/** What readers see of an announcement. Null when it names neither a tag nor a digest: there is nothing to look for. */
export function visibilityOf(
  target: EventTarget,
  find: (target: EventTarget) => Announced,
): Visibility {
  const { tag, digest } = namesOf(target)
  if (tag === null && digest === null) return null
  const { listed, digestMatches, artifacts } = find(target)
  if (!listed) return 'absent'
  if (digestMatches === false) return 'other digest'
  return artifacts === 'lacking' || artifacts === 'none yet' ? 'partly' : 'visible'
}
