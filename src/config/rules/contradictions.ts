import { counted } from '../../base/text.ts'
import { HOUR_MS } from '../../base/time.ts'
import { type Checked, place } from '../problems.ts'
import { findFleetContradictions } from './fleet.ts'
import { AGED } from '../sections/ages.ts'
import { valueFor } from '../kinds/maps.ts'
import { isLoopbackHost } from '../kinds/urls.ts'
import type { Values } from '../table.ts'

/** The longest time between two starts of a cron expression, milliseconds; null when it is not known. */
export type CronPeriod = (expression: string) => number | null

/** Settings that are sound by themselves and come to nothing, or to the contrary, together. */
export function findContradictions(checked: Checked, periodOf: CronPeriod | undefined): string[] {
  return [
    ...scopeWithoutCredential(checked),
    ...(periodOf === undefined ? [] : ages(checked, periodOf)),
    ...partsWithoutWhole(checked),
    ...proxyOfLoopback(checked),
    ...findFleetContradictions(checked),
  ]
}

function isGiven({ origins }: Checked, key: string): boolean {
  return (origins.get(key) ?? 'default') !== 'default'
}

function scopeWithoutCredential(checked: Checked): string[] {
  const { values } = checked
  const keys = ['scope', 'patterns', 'schedule']
  const given = keys.map((name) => `catalog.${name}`).find((key) => isGiven(checked, key))
  const has = (key: string): boolean => (values.get(key) ?? null) !== null
  if (given === undefined || !has('upstream.apiRoot')) return []
  if (['upstream.apiKey', 'upstream.token', 'oauth.clientId'].some(has)) return []
  return [
    `${place(checked, given)}: upstream has no credential, so the catalog is not mirrored at all. Set upstream.apiKey, ` +
      'upstream.token or oauth.clientId, or remove the line.',
  ]
}

function ages(checked: Checked, periodOf: CronPeriod): string[] {
  const { values } = checked
  const age = 'sync.maxAgeHours'
  const limits = values.get(age) as Values['sync']['maxAgeHours']
  const short = AGED.flatMap((section) => {
    const hours = valueFor(limits, section)
    const plan = SCHEDULES[section]
    const schedule = values.get(plan)
    if (typeof hours !== 'number' || typeof schedule !== 'string') return []
    const period = isGiven(checked, age) || isGiven(checked, plan) ? periodOf(schedule) : null
    if (period === null || period <= hours * HOUR_MS) return []
    const between = `the ${counted(round(period / HOUR_MS), 'hour')} between two runs of ${place(checked, plan)}`
    return [{ section, why: `${counted(hours, 'hour is', 'hours are')} shorter than ${between}` }]
  })
  return [...Map.groupBy(short, ({ why }) => why)].map(([why, found]) => {
    const stale = found.map(({ section }) => section).join(' and ')
    return `${place(checked, age)}: ${why}, so the data of ${stale} is stale before the next one. Raise it, or run more often.`
  })
}

/** The setting that says when a source is synced. */
const SCHEDULES = {
  feeds: 'osv.schedule',
  osv: 'osv.schedule',
  catalog: 'catalog.schedule',
  identity: 'catalog.schedule',
}

function round(hours: number): number {
  return Math.round(hours * 100) / 100
}

/** Views that are a part of others, which the list leaves out. */
function partsWithoutWhole(checked: Checked): string[] {
  const key = 'views.serve'
  const serve = checked.values.get(key)
  if (!Array.isArray(serve)) return []
  return PARTS.filter(([part, whole]) => serve.includes(part) && !serve.includes(whole)).map(
    ([part, whole, why]) =>
      `${place(checked, key)}: has ${part} and not ${whole}: ${why}. Add ${whole}, or remove ${part}.`,
  )
}

const PARTS = [
  ['derived', 'bucket', 'derived ecosystems are a part of the bucket'],
  ['findings', 'query', 'the tags are judged with the data of the query API'],
] as const

function proxyOfLoopback(checked: Checked): string[] {
  const { values } = checked
  const proxy = values.get('upstream.proxy')
  const root = values.get('upstream.apiRoot')
  if (typeof proxy !== 'string' || typeof root !== 'string') return []
  if (!isLoopbackHost(new URL(root).hostname)) return []
  return [
    `${place(checked, 'upstream.proxy')}: ${place(checked, 'upstream.apiRoot')} is on this machine itself, which is never ` +
      'asked through a proxy.',
  ]
}
