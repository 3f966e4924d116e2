import { MirrorError, messageOf } from '../../base/errors.ts'
import type { Config } from '../../config/schema.ts'
import { fieldsOfItem } from '../../base/json/forms/item-fields.ts'
import { withoutSecrets } from '../../sync/catalog/lists/items.ts'
import { statusOf } from '../../upstream/http/errors.ts'
import type { Item } from './service-answer.ts'
import type { Session } from '../../upstream/http/session.ts'
import { type UpstreamSurface, createUpstream } from '../../upstream/surfaces.ts'
import { VERSION } from '../../base/version.ts'
import { type GlobalOptions, SERVICE_FILES, print, settings, stoppable, warn } from '../../cli/context.ts'
import { table } from '../../cli/output.ts'

/** Options of every command that asks the service. */
export interface ServiceCommandOptions extends GlobalOptions {
  json?: boolean
}

/** The files that the operations of a surface use; of any other surface, those of the service. */
const FILES: Partial<Record<UpstreamSurface, readonly string[]>> = {
  remediation: ['upstream'],
  settings: ['upstream', 'webhooks.secrets'],
  identity: ['upstream.caFile', 'identity'],
}

/** Asks in a session of its own that ends after a time (milliseconds): what it waits for throws then. */
export type AskWithin<S> = <T>(ms: number, ask: (session: S) => Promise<T>) => Promise<T>

/** Calls `work` with a session of one surface, stopped by a signal. Throws `config` for what is not set. */
export async function withSession<T>(
  options: GlobalOptions,
  surface: UpstreamSurface,
  work: (session: Session, config: Config, within: AskWithin<Session>) => Promise<T>,
): Promise<T> {
  const { config } = settings(options, false, FILES[surface] ?? SERVICE_FILES)
  return stoppable(async (stop) => {
    const upstream = createUpstream({ config, version: VERSION, now: Date.now, warn })
    try {
      const client = upstream.client(surface)
      return await work(client.open(stop, 'ops'), config, async (ms, ask) => {
        const late = new AbortController()
        const timer = setTimeout(() => late.abort(new MirrorError('aborted', 'the time is up')), ms)
        try {
          return await ask(client.open(AbortSignal.any([stop, late.signal]), 'ops'))
        } finally {
          clearTimeout(timer)
        }
      })
    } finally {
      await upstream.close()
    }
  })
}

/** Replaces a bare 404 by a message that names what is missing, and where to look. */
export async function named<T>(what: string, list: string, work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    const code = error instanceof MirrorError ? error.code : null
    if (code !== 'upstream_not_found') throw error
    const message = `the service has no ${what}; "patchmirror ${list}" shows what it has (${messageOf(error)})`
    throw new MirrorError('upstream_not_found', message, { cause: error })
  }
}

/** Whether the service refused because it does not have what was asked for at all. */
export function isBeyondContract(error: unknown): boolean {
  return [404, 405, 501].includes(statusOf(error) ?? 0)
}

/** Reports an operation as not part of the contract where a deployment does not have it (404, 405, 501). */
export async function beyondContract<T>(what: string, work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (!isBeyondContract(error)) throw error
    const message = `this deployment cannot ${what}: the contract does not promise it (${messageOf(error)})`
    throw new MirrorError('upstream_status', message, { cause: error })
  }
}

/** Prints objects as a table of the columns that they have, or as JSON. What could be a secret is left out. */
export function printItems(items: readonly Item[], columns: readonly string[], { json }: ServiceCommandOptions): void {
  const shown = items.map((item) => masked(item, null))
  if (json === true) return print(JSON.stringify(shown, null, 2))
  if (shown.length === 0) return print('none')
  const rows = shown.map(ownFields)
  const present = columns.filter((name) => rows.some((item) => item[name] !== undefined))
  const own = present.length > 0 ? present : Object.keys(rows[0] ?? {}).slice(0, 6)
  print(
    table(
      own,
      rows.map((item) => own.map((name) => cell(item[name]))),
    ),
  )
}

/** Returns the fields of an item of any kind that commands list, also those within an object of it. */
function ownFields(item: Item): Item {
  const kinds = ['users', 'subscriptions', 'apiKeys', 'webhooks']
  return kinds.reduce((fields, kind) => fieldsOfItem(fields, kind), item)
}

/** Prints one object, a field a line, or as JSON. What could be a secret is left out, and `secret` masked. */
export function printItem(item: Item, { json }: ServiceCommandOptions, secret: string | null = null): void {
  const shown = masked(item, secret)
  if (json === true) return print(JSON.stringify(shown, null, 2))
  const rows = Object.entries(shown).map(([name, value]) => [name, cell(value)])
  print(table(['field', 'value'], rows))
}

const MASK = '********'

/** An object without what could be a secret: by its field's name, by its form, and the one that is known, at any depth. */
function masked(item: Item, secret: string | null): Item {
  const cut = withoutSecrets(Buffer.from(JSON.stringify(item)), 'the answer').toString('utf8')
  return JSON.parse(cut, (_, value: unknown) =>
    secret !== null && typeof value === 'string' ? value.replaceAll(secret, MASK) : value,
  ) as Item
}

/** A value in one line. */
function cell(value: unknown): string {
  if (value === null || value === undefined) return '-'
  return typeof value === 'string' ? value : JSON.stringify(value)
}
