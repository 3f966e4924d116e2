import { UNIX_PEER } from '../../base/connections/limit.ts'
import type { Checked } from '../problems.ts'

/** Returns the problems of the main listener's settings that show only together. */
export function checkServer(checked: Checked): string[] {
  const { values, origins, refused } = checked
  const isSet = (name: string): boolean => (values.get(`server.${name}`) ?? null) !== null
  const hasSocket = String(values.get('server.listen')).startsWith('unix:')
  const place = (name: string): string => `server.${name} (${origins.get(`server.${name}`) ?? 'not set'})`
  if (['listen', 'certFile', 'keyFile', 'trustProxy'].some((name) => refused.has(`server.${name}`))) return []
  const given = ['certFile', 'keyFile'].find(isSet)
  const problems = checkPair('server', { isSet, place })
  if (hasSocket && given !== undefined)
    problems.push(
      `${place(given)}: ${place('listen')} is a socket, and HTTP on a unix socket has no TLS. Remove one of them.`,
    )
  const trusted = values.get('server.trustProxy')
  if (!hasSocket && Array.isArray(trusted) && trusted.includes(UNIX_PEER))
    problems.push(
      `${place('trustProxy')}: ${UNIX_PEER} stands for connections of a socket, and server.listen is none. Give unix:PATH there, or remove the entry.`,
    )
  return problems
}

interface SectionPlaces {
  readonly isSet: (name: string) => boolean
  readonly place: (name: string) => string
}

/** Returns the problem of a certificate without its key, or of a key without its certificate. */
export function checkPair(section: string, { isSet, place }: SectionPlaces): string[] {
  if (isSet('certFile') === isSet('keyFile')) return []
  const [given, missing] = isSet('certFile') ? ['certFile', 'keyFile'] : ['keyFile', 'certFile']
  return [`${section}.${missing}: not set, though ${place(given)} is. TLS needs both files.`]
}
