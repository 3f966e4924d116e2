import { clip } from '../../../../base/text.ts'
import type { Status } from '../../../../base/reports/status.ts'
import { handleOfTarget, nameOfTarget } from '../../../../base/domain/status.ts'
import type { Block } from '../../blocks.ts'
import { type Cell, count, plain, state, time } from '../../../lookup/answers/cells.ts'
import type { PageCall, PageView } from '../../page.ts'

/** Loads the page of the relay's targets: state, what waits, and why the last delivery failed. */
export function loadRelay({ status, now, config }: PageCall): PageView {
  const targets = status?.relay ?? []
  const table: Block = {
    kind: 'table',
    title: 'Targets',
    note: 'By its name in relay.targets, else by its host: the rest of a URL may be secret. An event waits until its target has taken it, or until it is given up for its age; a disabled target gets none.',
    columns: ['Target', 'State', 'Waiting', 'Last delivered', 'Last failure', 'Why', 'Given up'],
    rows: targets.map((one) => rowOf(one, now)),
    empty: whyNoTargets(config),
  }
  const failing = targets.filter(({ state: is }) => is === 'failing' || is === 'disabled')
  const notices = failing.map((one): Block => ({
    kind: 'notice',
    tone: 'warn',
    title: clip(`${nameOfTarget(one)}: ${one.state}`),
    text: 'Correct what the reason names, then have it tried again at once.',
    commands: [`patchmirror relay --enable ${handleOfTarget(one)}`],
  }))
  return { title: 'Relay', blocks: [...notices, table] }
}

/** Says why no targets are shown. */
export function whyNoTargets({ relay }: PageCall['config']): string {
  const { length } = relay.targets
  return length === 0 ? 'no targets (relay.targets)' : `relay.targets has ${length}, and nothing is known of them here`
}

function rowOf(one: Status['relay'][number], now: number): (Cell | Cell[])[] {
  const { state: is, since, pending, deliveredAt, failedAt, reason, givenUp } = one
  const words = state(is, is === 'ok' ? 'good' : 'bad')
  return [
    plain(nameOfTarget(one)),
    since === null ? words : [words, time(since, now)],
    count(pending),
    time(deliveredAt, now),
    time(failedAt, now),
    plain(reason, 1000),
    count(givenUp),
  ]
}
