/** Scheme, host and port of a URL, for messages: no path, no credentials. */
export function originOf(url: URL): string {
  return `${url.protocol}//${url.host}`
}

/** Whether a redirect from one to the other stays on the same host and does not drop encryption. */
export function sameHost(from: URL, to: URL): boolean {
  if (to.protocol === from.protocol) return to.host === from.host
  return from.protocol === 'http:' && to.protocol === 'https:' && to.hostname === from.hostname
}
