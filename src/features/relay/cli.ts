import { type NamedTarget, relayTargets, withNames } from '../../config/kinds/relay-targets.ts'
import { handleOfTarget, nameOfTarget } from '../../base/domain/status.ts'
import { counted } from '../../base/text.ts'
import { closing } from '../../base/closing.ts'
import { relayStatus } from '../../server/status/status.ts'
import type { Config } from '../../config/schema.ts'
import { MirrorError } from '../../base/errors.ts'
import { formatSecret } from './sender.ts'
import { inboxPath, openInbox, openInboxReader, openReader, openWriter } from '../../store/database/open.ts'
import { namingFaults } from '../../store/database/faults.ts'
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
  const stored = db === null ? [] : closing(db, () => createOutboxReads(db).listTargets())
  const targets = withNames(stored, relay)
  const kindOf = ({ url }: RelayTarget): Kind => kindIn(relay, url)
  if (options.json === true) printJson(targets.map((target) => ({ ...relayStatus(target), kind: kindOf(target) })))
  else if (targets.length === 0) print(whyNone(relay))
  else
    print(
      table(
        HEAD,
        targets.map((target) => row(target, kindOf(target))),
      ),
    )
  return targets.some(({ state }) => state === 'disabled') ? 1 : 0
}

function whyNone({ targets }: Config['relay']): string {
  return targets.length === 0
    ? 'no events are forwarded: set relay.targets'
    : 'no events are forwarded yet: the daemon has not run with relay.targets as it is now ("patchmirror serve")'
}

/** What a target is sent: signed events, or messages to a team workspace; null: no setting that can be read names it. */
type Kind = NamedTarget['kind'] | null

function kindIn(relay: Config['relay'], url: string): Kind {
  return relayTargets(relay).find((one) => one.url === url)?.kind ?? null
}

const HEAD = ['id', 'name', 'target', 'kind', 'state', 'since', 'waiting', 'given up', 'delivered', 'last failure']

function row(target: Parameters<typeof relayStatus>[0], kind: Kind): string[] {
  const { id, state, since, pending, givenUp, deliveredAt } = target
  const shown = relayStatus(target)
  return [
    String(id),
    nameOfTarget(shown),
    shown.target ?? '',
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
  const { data, relay } = settings(options, false, []).config
  const { dir } = data
  const known = openInboxReader(dir)
  known?.close()
  const db = known === null ? null : openInbox(dir)
  const found =
    db === null ? null : closing(db, () => namingFaults(dir, () => enable(db, options.enable, relay), inboxPath(dir)))
  if (found === null)
    throw new MirrorError('not_found', `there is no target ${options.enable}; "patchmirror relay" shows all`)
  const { id, name, state: before } = found
  if (options.json === true) printJson({ id, name, enabled: true, before })
  else print(`target ${handleOfTarget(found)} ${ENABLED[before]}${lostWords(found)}`)
  return 0
}

/** What a disabled target did not get, and does not get any more. */
function lostWords({ state, givenUp }: RelayTarget): string {
  if (state !== 'disabled' || givenUp === 0) return ''
  return `; given up: ${counted(givenUp, 'event')}`
}

/** What enabling a target did, by its state before. */
const ENABLED: Readonly<Record<RelayTarget['state'], string>> = {
  disabled: 'is enabled: it gets the events from now on',
  failing: 'was not disabled: what waits for it is sent again at once',
  ok: 'was not disabled: nothing was changed',
  paused: 'is not in relay.targets, or another mirror leads: nothing is sent to it',
}

/** Enables a target by its name, id, host or address; returns it as it was, null where there is none. Throws `usage` for several. */
function enable(db: Db, name: string, relay: Config['relay']) {
  const outbox = createRelayOutbox(db)
  const named = withNames(outbox.listTargets(), relay).filter((one) => {
    const shown = relayStatus(one)
    return [String(one.id), nameOfTarget(shown), shown.target].includes(name)
  })
  if (named.length > 1) {
    const ids = named.map(({ id }) => id).join(', ')
    throw new MirrorError('usage', `several targets are named ${name}: give the id of one: ${ids}`)
  }
  const target = named[0] ?? null
  if (target !== null) outbox.enableTarget(target.id)
  return target
}
