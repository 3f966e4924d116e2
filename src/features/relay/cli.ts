import { chatUrls, relayUrls } from '../../config/kinds/urls.ts'
import { closing } from '../../cli/store-access.ts'
import { relayStatus } from '../../server/status/report.ts'
import type { Config } from '../../config/schema.ts'
import { MirrorError } from '../../base/errors.ts'
import { formatSecret } from './sender.ts'
import {
  namingFaults,
  inboxPath,
  openInbox,
  openInboxReader,
  openReader,
  openWriter,
} from '../../store/database/open.ts'
import type { Db } from '../../store/database/sqlite.ts'
import { type RelayTarget, createRelayOutbox, createOutboxReads } from '../../store/webhooks/outbox.ts'
import { createSecretReader } from '../../store/secret.ts'
import { type GlobalOptions, print, printJson, settings } from '../../cli/context.ts'
import { timeOf, table } from '../../cli/output.ts'

/** `patchmirror relay --secret`: prints the secret or key that a receiver needs to verify forwarded events. */
export function relaySecretCommand(options: GlobalOptions & { json?: boolean }): number {
  const { relay, data } = settings(options, false, ['relay.secret']).config
  // Before the first sync or import too: the secret is made with the database.
  const secret = relay.secret ?? formatSecret(ownKey(data.dir))
  if (options.json === true) printJson({ secret })
  else print(secret)
  return 0
}

function ownKey(dataDir: string): Buffer {
  const db = openReader(dataDir) ?? openWriter(dataDir)
  return closing(db, () => createSecretReader(db).readSecret('relay'))
}

/** `patchmirror relay`: the state of each target. Exit code 1 when one is disabled. */
export function relayStatusCommand(options: GlobalOptions & { json?: boolean }): number {
  const { data, relay } = settings(options, false, []).config
  const db = openInboxReader(data.dir)
  const targets = db === null ? [] : closing(db, () => createOutboxReads(db).listTargets())
  const kindOf = ({ url }: RelayTarget): Kind => kindIn(relay, url)
  if (options.json === true) printJson(targets.map((target) => ({ ...relayStatus(target), kind: kindOf(target) })))
  else if (targets.length === 0) print('no events are forwarded: set relay.targets')
  else
    print(
      table(
        HEAD,
        targets.map((target) => row(target, kindOf(target))),
      ),
    )
  return targets.some(({ state }) => state === 'disabled') ? 1 : 0
}

/** What a target is sent: signed events, or messages to a team workspace; null: no setting that can be read names it. */
type Kind = 'standard' | 'chat' | null

function kindIn(relay: Pick<Config['relay'], 'targets'>, url: string): Kind {
  if (chatUrls(relay).includes(url)) return 'chat'
  return relayUrls(relay).includes(url) ? 'standard' : null
}

const HEAD = ['id', 'target', 'kind', 'state', 'since', 'waiting', 'given up', 'delivered', 'last failure']

function row(target: RelayTarget, kind: Kind): string[] {
  const { id, state, since, pending, givenUp, deliveredAt } = target
  return [
    String(id),
    relayStatus(target).target ?? '',
    kind ?? '-',
    state,
    timeOf(since),
    String(pending),
    String(givenUp),
    timeOf(deliveredAt),
    lastFailure(target),
  ]
}

/** The last failure with its time; beside a target that takes what it is sent, as something past. */
function lastFailure({ state, reason, failedAt }: RelayTarget): string {
  if (reason === null) return ''
  const when = failedAt === null ? '' : `${timeOf(failedAt)} `
  return `${state === 'ok' ? 'earlier: ' : ''}${when}${reason}`
}

/** `patchmirror relay --enable TARGET`: a disabled target receives new events again; a failing one is retried at once. */
export function enableTargetCommand(options: GlobalOptions & { enable: string; json?: boolean }): number {
  const { dir } = settings(options, false, []).config.data
  const known = openInboxReader(dir)
  known?.close()
  const db = known === null ? null : openInbox(dir)
  const found =
    db === null ? null : closing(db, () => namingFaults(dir, () => enable(db, options.enable), inboxPath(dir)))
  if (found === null)
    throw new MirrorError('not_found', `there is no target ${options.enable}; "patchmirror relay" shows all`)
  const { id, state: before } = found
  if (options.json === true) printJson({ id, enabled: true, before })
  else print(`target ${id} ${ENABLED[before]}`)
  return 0
}

/** What enabling a target did, by its state before. */
const ENABLED: Readonly<Record<RelayTarget['state'], string>> = {
  disabled: 'is enabled: it gets the events from now on',
  failing: 'was not disabled: what waits for it is sent again at once',
  ok: 'was not disabled: nothing was changed',
}

/** Enables a target by its id or as the list names it; returns it as it was, null where there is none. Throws `usage` for several. */
function enable(db: Db, name: string): RelayTarget | null {
  const outbox = createRelayOutbox(db)
  const named = outbox.listTargets().filter((one) => String(one.id) === name || relayStatus(one).target === name)
  if (named.length > 1) {
    const ids = named.map(({ id }) => id).join(', ')
    throw new MirrorError('usage', `several targets are named ${name}: give the id of one: ${ids}`)
  }
  const target = named[0] ?? null
  if (target !== null) outbox.enableTarget(target.id)
  return target
}
