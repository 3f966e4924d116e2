import { MirrorError } from '../../../../base/errors.ts'
import { LIST_COUNTS } from '../../../../base/domain/run-facts.ts'
import { type Quarantine, refusedBy } from '../../../../store/runs/quarantine.ts'
import { messageNow } from '../../../../store/runs/rejected.ts'
import type { Run, RunFacts } from '../../../../store/runs/runs.ts'
import type { Block } from '../../blocks.ts'
import { type Cell, code, count, grouped, plain, size, state, time, withTimes } from '../../../lookup/answers/cells.ts'
import { type PageCall, type PageView, numberOf } from '../../page.ts'
import { runDuration, runState } from './list.ts'
import { differenceBlocks, quarantineNotice } from './quarantine.ts'

/** Loads the page of one run: what it found, what it cost, what is missing, and what it refused to do. */
export function loadRun(call: PageCall): PageView {
  const id = numberOf(call.query, 'id')
  const run = id === null ? null : call.reads.runs.readRun(id)
  if (run === null) throw new MirrorError('not_found', `there is no run ${id ?? ''}: old runs are forgotten`)
  const quarantine = call.reads.quarantine.readQuarantine(refusedBy(run))
  const difference = quarantine === null ? [] : differenceBlocks(call, run.id, quarantine)
  const isShown = difference.some(({ kind }) => kind === 'table')
  return {
    title: `Run ${run.id}: ${run.kind} of ${run.source}`,
    blocks: [
      ...(quarantine === null ? [] : [quarantineNotice(call, quarantine)]),
      { kind: 'facts', rows: summaryOf(call, run, quarantine?.decision ?? null) },
      ...difference,
      { kind: 'facts', title: 'What it cost', rows: costOf(run.facts) },
      { kind: 'facts', title: 'Facts', rows: factsOf(call, run.facts) },
      ...listsOf(call, run, isShown),
    ],
  }
}

function summaryOf(
  { now, ui, reads }: PageCall,
  run: Run,
  decision: Quarantine['decision'],
): [string, Cell | Cell[]][] {
  const { trigger, startedAt, endedAt, asOf, snapshot, code: error, source } = run
  const isDecided = run.state === 'quarantined' && decision !== null
  return [
    ['state', isDecided ? state(`${run.state}, ${decision}`, 'plain') : runState(run)],
    ['what happened', plain(withTimes(messageNow(reads, run.message) ?? ''), 2000)],
    ...(error === null ? [] : ([['error code', code(error)]] as [string, Cell][])),
    ['source', { text: source, href: ui('runs', { source }) }],
    ['trigger', plain(trigger)],
    ['started', time(startedAt, now)],
    ['ended', time(endedAt, now)],
    ['took', runDuration(run)],
    ["upstream's date", time(asOf, now)],
    ['snapshot', snapshot === null ? plain(null) : { ...code(snapshot), whole: snapshot }],
  ]
}

const COST: Readonly<Record<string, (value: number) => Cell>> = {
  requests: count,
  bytes: size,
  retries: count,
  savedBytes: size,
  archiveBytes: size,
}

function costOf(facts: RunFacts): [string, Cell][] {
  const found = Object.entries(COST).flatMap(([name, show]): [string, Cell][] => {
    const value = facts[name]
    return typeof value === 'number' ? [[wordsOf(name), show(value)]] : []
  })
  return found.length > 0 ? found : [['requests', plain('none were recorded')]]
}

function factsOf({ now }: PageCall, facts: RunFacts): [string, Cell][] {
  const found = Object.entries(facts).flatMap(([name, value]): [string, Cell][] => {
    if (Array.isArray(value) || name in COST) return []
    if (typeof value !== 'number') return [[wordsOf(name), plain(value, 1000)]]
    return [[wordsOf(name), name.endsWith('At') || name === 'asOf' ? time(value, now) : count(value)]]
  })
  return found.length > 0 ? found : [['facts', plain('none were recorded')]]
}

/** Returns the words of a fact's name: `plannedRemoved` is `planned removed`. */
function wordsOf(name: string): string {
  return (
    WORDS[name] ??
    (name === LIST_COUNTS['lackingIds'] ? 'missing' : name).replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
  )
}

const WORDS: Readonly<Record<string, string>> = {
  lackingIds: 'Missing, with the reason',
  linksLeftIds: 'Links that gave no document',
  plannedAdded: 'would be added',
  plannedChanged: 'would be changed',
  plannedRemoved: 'would be removed',
  plannedAddedIds: 'Would be added',
  plannedChangedIds: 'Would be changed',
  plannedRemovedIds: 'Would be removed',
  removedIds: 'Removed',
  incompleteLists: 'Lists that are not known to be complete',
  unprovedLists: 'Lists whose end is not proved',
  contradictions: 'Listed, and not in the archive',
  doubtfulIds: 'Changes that should not be believed',
  doubtsBelowLimitsIds: 'Changes that may hide something, below the limits of the guard',
  unusable: 'Entries that cannot be mirrored',
}

/** The settings that a run followed, each with a hash of its value: only the program compares them. */
const SETTINGS = 'scopeSettings'

/** Returns the lists among the facts; those of planned changes only where the whole difference is not shown. */
function listsOf({ ui }: PageCall, { source, facts }: Run, isShown: boolean): Block[] {
  return Object.entries(facts).flatMap(([name, value]): Block[] => {
    if (!Array.isArray(value) || value.length === 0 || name === SETTINGS) return []
    if (isShown && source === 'osv' && name.startsWith('planned')) return []
    const lines = value as readonly string[]
    const all = Number(facts[LIST_COUNTS[name] ?? ''] ?? lines.length)
    const isIds = source === 'osv' && name.endsWith('Ids')
    const rows = lines.map((line): Cell[] => {
      const [id, why] = split(line)
      return [isIds ? code(id, ui('record', { id })) : code(id), plain(why)]
    })
    return [
      {
        kind: 'table',
        title: wordsOf(name).replace(/^./, (letter) => letter.toUpperCase()),
        ...(all > lines.length && { note: `The first ${lines.length} of ${grouped(all)}.` }),
        columns: ['Id or path', 'Reason'],
        rows,
        empty: 'none',
      },
    ]
  })
}

/** Splits a line `id: reason`, or `id (reason)`. */
function split(line: string): [string, string | null] {
  const [, id = line, why = null] = /^(\S+?):? (.*)$/s.exec(line) ?? []
  return [id, why]
}
