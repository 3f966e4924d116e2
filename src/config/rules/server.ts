import { UNIX_PEER } from '../../base/connections/limit.ts'
import { type Checked, isSet, place } from '../problems.ts'

/** Returns the problems of the main listener's settings that show only together. */
export function checkServer(checked: Checked): string[] {
  const { values, refused } = checked
  const hasSocket = String(values.get('server.listen')).startsWith('unix:')
  if (['listen', 'certFile', 'keyFile', 'trustProxy'].some((name) => refused.has(`server.${name}`))) return []
  const given = ['server.certFile', 'server.keyFile'].find((key) => isSet(checked, key))
  const problems = checkPair(checked, 'server')
  if (hasSocket && given !== undefined)
    problems.push(
      `${place(checked, given)}: ${place(checked, 'server.listen')} is a socket, and HTTP on a unix socket has no TLS. Remove one of them.`,
    )
  const trusted = values.get('server.trustProxy')
  if (!hasSocket && Array.isArray(trusted) && trusted.includes(UNIX_PEER))
    problems.push(
      `${place(checked, 'server.trustProxy')}: ${UNIX_PEER} stands for connections of a socket, and server.listen is none. Give unix:PATH there, or remove the entry.`,
    )
  return problems
}

/** Returns the problem of a certificate without its key, or of a key without its certificate. */
export function checkPair(checked: Checked, section: 'server' | 'webhooks'): string[] {
  const cert = `${section}.certFile`
  const key = `${section}.keyFile`
  if (isSet(checked, cert) === isSet(checked, key)) return []
  const [given, missing] = isSet(checked, cert) ? [cert, key] : [key, cert]
  return [`${missing}: not set, though ${place(checked, given)} is. TLS needs both files.`]
}
