import type { Config } from '../../config/schema.ts'
import { MirrorError } from '../../base/errors.ts'
import { isUnsent, statusOf } from '../../upstream/http/errors.ts'
import { isServed } from '../context.ts'
import { LIST } from './subscriptions.ts'
import { daemonUrl, withTakenPort } from '../daemon-client.ts'

/** Adds to the error of a registration whether the service may have a subscription, and what to do next. */
export function withNextStep(error: unknown): unknown {
  if (!(error instanceof MirrorError)) return error
  const hint = hintOf(error)
  return hint === null ? error : new MirrorError(error.code, `${error.message}. ${hint}`, { cause: error })
}

const NOTHING_MADE = 'No subscription was made'

function hintOf(error: MirrorError): string | null {
  const status = statusOf(error) ?? 0
  // Both name the setting of the credential themselves.
  if (error.code === 'upstream_auth' || status === 401 || status === 403) return null
  if ([404, 405, 501].includes(status))
    return (
      `${NOTHING_MADE}: the service has no webhook settings at this address. Check upstream.apiRoot; where subscriptions are made ` +
      'in the platform, make one there and give its secret as webhooks.secrets'
    )
  if (isUnsent(error))
    return `${NOTHING_MADE}, for the service was not reached or takes no more requests now: try again; "patchmirror doctor" checks the way to it`
  if (status >= 400 && status < 500)
    return `${NOTHING_MADE}: check the URL, which the service must be able to reach, and the types of --event`
  if (!error.code.startsWith('upstream_')) return null
  return (
    `Whether the subscription was made is not known: look for it with "patchmirror ${LIST}". One whose secret is not stored here ` +
    'is of no use: remove it ("patchmirror webhooks delete ID"), then register again'
  )
}

/** Returns what to do after a test that was not delivered: where this mirror takes deliveries, and how to send the next test. */
export function afterFailedTest(config: Config, id: string | null): string {
  const { data } = config
  const again = `"patchmirror webhooks test ${id ?? 'ID'}"`
  const kept = 'the subscription and its secret stay, so do not register again'
  return isServed(data.dir)
    ? `a daemon serves ${data.dir} and takes webhooks ${placeOf(config)}: check that the URL leads there from the service, then ${again}; ${kept}`
    : `no daemon serves ${data.dir}: start it ("patchmirror serve"), then ${again}; ${kept}`
}

/** Where deliveries arrive: on a port of their own, or where the mirror listens, with the address under which it is known. */
function placeOf(config: Config): string {
  const { port, path } = config.webhooks
  if (port !== null) return `on port ${port}`
  const { server } = withTakenPort(config)
  const own = server.socket === null ? `on port ${server.port}` : `on ${daemonUrl(server)}`
  return server.publicUrl === null ? own : `${own}, which is ${server.publicUrl}${path}`
}

/** Returns what to do about a subscription whose secret is not stored. */
export function afterLostSecret(id: string | null): string {
  const remove = `"patchmirror webhooks delete ${id ?? 'ID'}"`
  return `deliveries are refused without it: give the secret as webhooks.secrets, or remove the subscription (${remove}) and register again`
}
