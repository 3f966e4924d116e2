import { isIP } from 'node:net'
import { type CheckContext, type Parsed, type Setting, absolutePath, textSetting } from './base.ts'

/** Longest path of a unix socket, bytes: the shortest limit among operating systems, which truncate or refuse longer ones. */
const SOCKET_PATH_BYTES = 103
/** Who may connect to a socket where the address does not say: user and group of the daemon. */
const SOCKET_MODE = '0660'
const NAME = /^[a-z\d_]([a-z\d_-]*[a-z\d])?(\.[a-z\d]([a-z\d-]*[a-z\d])?)*$/i

/** An address to listen on: HOST:PORT, or unix:PATH with or without ?mode=0660. */
export function listenAddress(): Setting<string> {
  const allowed = 'HOST:PORT (0.0.0.0:8080, "[::]:8080"), or unix:PATH?mode=0660'
  return textSetting(allowed, '127.0.0.1:8080', (value, context) => {
    const text = value.trim()
    return text.startsWith('unix:') ? parseSocket(text, context) : parseHostAndPort(text)
  })
}

/** An address of a listener without a socket: HOST:PORT. */
export function hostAndPort(): Setting<string> {
  return textSetting('HOST:PORT (0.0.0.0:8443, "[::]:8443")', '0.0.0.0:8443', (value) => parseHostAndPort(value.trim()))
}

function parseHostAndPort(text: string): Parsed<string> {
  const [, name = '', port = ''] = /^(.*):(\d{1,5})$/.exec(text) ?? []
  const host = bare(name)
  const isNamed = name === host ? isIP(host) === 4 || NAME.test(host) : isIP(host) === 6
  if (port === '' || !isNamed) return { fault: 'is not a host or an address, a colon and a port' }
  return Number(port) > 65_535 ? { fault: 'has a port above 65535' } : { value: text }
}

function bare(host: string): string {
  return host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host
}

function parseSocket(text: string, context: CheckContext): Parsed<string> {
  const [, path = '', mode] = /^unix:([^?]+?)(?:\?mode=(.*))?$/.exec(text) ?? []
  if (path === '') return { fault: 'has no path of a socket after unix:' }
  if (mode !== undefined && !/^0?[67][0-7]{2}$/.test(mode))
    return { fault: 'has a mode that is not in octal digits that start with 6 or 7' }
  const absolute = absolutePath(path, context)
  if ('fault' in absolute) return absolute
  if (Buffer.byteLength(absolute.value) > SOCKET_PATH_BYTES)
    return { fault: `has a path longer than ${SOCKET_PATH_BYTES} bytes as an absolute path` }
  return { value: `unix:${absolute.value}?mode=${(mode ?? SOCKET_MODE).padStart(4, '0')}` }
}

/** Returns the parts of a checked address: port 0 takes any free one, and a socket, by its absolute path, takes the place of both. */
export function partsOfListen(address: string) {
  const [, socket, socketMode = SOCKET_MODE] = /^unix:([^?]+)\?mode=(\d+)$/.exec(address) ?? []
  if (socket !== undefined) return { host: '127.0.0.1', port: 0, socket: socket as string | null, socketMode }
  const at = address.lastIndexOf(':')
  return { host: bare(address.slice(0, at)), port: Number(address.slice(at + 1)), socket: null, socketMode }
}
