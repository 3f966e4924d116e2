import { MirrorError } from '../errors.ts'

/** A redirect that leaves the host: for what the service keeps elsewhere it says where that is. */
export class LeavingError extends MirrorError {
  /** Where it leads, in full: it may hold a signature, so it is in no message. */
  readonly location: string
  constructor(message: string, location: string) {
    super('upstream_status', message)
    this.location = location
  }
}

/** Scheme, host and port of a URL, for messages: no path, no credentials. */
export function originOf(url: URL): string {
  return `${url.protocol}//${url.host}`
}

/** Whether a redirect from one to the other stays on the same host and does not drop encryption. */
export function sameHost(from: URL, to: URL): boolean {
  if (to.protocol === from.protocol) return to.host === from.host
  return from.protocol === 'http:' && to.protocol === 'https:' && to.hostname === from.hostname
}

/**
 * Where a redirect leads, if it may be followed: within the host, never back from https, and with a credential not to
 * another port either. Throws `upstream_status`; `setting` is the one that names the root.
 */
export function redirected(from: URL, location: string, setting: string, credential: boolean): URL {
  const to = URL.parse(location, from.href)
  const stays = to !== null && sameHost(from, to) && (!credential || to.host === from.host)
  if (stays) return to
  throw new LeavingError(
    `${from.pathname}: redirected to ${to === null ? 'nowhere' : originOf(to)}, and only redirects within ` +
      `${originOf(from)} are followed. If the service moved, set ${setting} to its new address.`,
    to?.href ?? '',
  )
}
