/** One place a vulnerability is fixed in: how its ids, ecosystem, names and versions look (as observed). */
export interface Platform {
  /** The id's part between `ROOT-` and the vulnerability. */
  idPart: string
  /** The feed filters' name of the ecosystem (service API, section 4). */
  feed: 'alpine' | 'debian' | 'ubuntu' | 'pypi' | 'npm' | 'maven'
  ecosystem: string
  distro: string
  /** "" for language ecosystems. */
  distroVersion: string
}

const os = (feed: 'alpine' | 'debian' | 'ubuntu', name: string, idVersion: string, v: string) => ({
  idPart: `OS-${name.toUpperCase()}-${idVersion}`,
  feed,
  ecosystem: `Root:${name}:${v}`,
  distro: feed,
  distroVersion: v,
})

const language = (feed: 'pypi' | 'npm' | 'maven', ecosystem: string) => ({
  idPart: `APP-${feed.toUpperCase()}`,
  feed,
  ecosystem: `Root:${ecosystem}`,
  distro: feed,
  distroVersion: '',
})

/**
 * What generated records are about: each distribution and language with its place in ids and
 * ecosystems.
 */
export const TARGETS: readonly Platform[] = [
  os('alpine', 'Alpine', '317', '3.17'),
  os('alpine', 'Alpine', '318', '3.18'),
  os('alpine', 'Alpine', '319', '3.19'),
  os('alpine', 'Alpine', '320', '3.20'),
  os('debian', 'Debian', 'bullseye', '11'),
  os('debian', 'Debian', 'bookworm', '12'),
  os('debian', 'Debian', 'trixie', '13'),
  os('ubuntu', 'Ubuntu', '2004', '20.04'),
  os('ubuntu', 'Ubuntu', '2204', '22.04'),
  os('ubuntu', 'Ubuntu', '2404', '24.04'),
  language('npm', 'npm'),
  language('pypi', 'PyPI'),
  language('maven', 'Maven'),
]

const words = (text: string): readonly string[] => text.split(' ')

/** Upstream package names per kind of target. */
export const PACKAGES: Readonly<Record<Platform['feed'], readonly string[]>> = {
  alpine: words(
    'curl openssl busybox zlib expat libxml2 sqlite nginx git bash apk-tools musl pcre2 nghttp2 libssh2 c-ares ' +
      'brotli xz bzip2 gnutls libarchive tiff freetype libpng openjpeg postgresql15 redis nodejs python3 perl ruby',
  ),
  debian: words(
    'glibc openssl systemd curl gnutls28 expat libxml2 sqlite3 nginx git bash pcre2 nghttp2 krb5 openldap pam ' +
      'shadow util-linux tar perl python3.11 ncurses libgcrypt20 zlib xz-utils tiff freetype imagemagick bind9 vim',
  ),
  ubuntu: words(
    'glibc openssl systemd curl gnutls28 expat libxml2 sqlite3 nginx git bash pcre3 nghttp2 krb5 openldap pam ' +
      'snapd apport cups avahi perl python3.10 ncurses linux zlib less ghostscript poppler bind9 vim postgresql-14',
  ),
  npm: words(
    'semver lodash minimist express axios ws tar json5 qs debug ansi-regex braces node-fetch follow-redirects ' +
      '@babel/core @babel/traverse @angular/core @nestjs/common vite webpack postcss undici tough-cookie jose',
  ),
  pypi: words(
    'requests urllib3 django flask jinja2 pillow numpy cryptography aiohttp pyyaml lxml setuptools tornado ' +
      'werkzeug certifi idna paramiko scrapy gunicorn sqlparse twisted transformers torch mlflow',
  ),
  maven: words(
    'org.springframework:spring-core org.springframework:spring-web com.fasterxml.jackson.core:jackson-databind ' +
      'org.apache.logging.log4j:log4j-core commons-io:commons-io io.netty:netty-codec org.yaml:snakeyaml ' +
      'com.google.guava:guava org.apache.tomcat.embed:tomcat-embed-core ch.qos.logback:logback-classic',
  ),
}

/** The patched package's name beside the upstream one: `rootio-curl`, `@rootio/babel__core`, … */
export function patchedName(feed: Platform['feed'], name: string): string {
  if (feed === 'maven') return `io.root.${name}`
  if (feed === 'npm') return `@rootio/${name.replace(/^@/, '').replace('/', '__')}`
  return `rootio-${name}`
}

/** The n-th patched version on top of an upstream version, as the ecosystem writes it. */
export function patchedVersion(target: Platform, upstream: string, n: number): string {
  switch (target.feed) {
    case 'alpine':
      return `${upstream}-r${String(n).padStart(5, '0').replace(/^0000/, '0007')}`
    case 'debian':
    case 'ubuntu':
      return `1:${upstream}-3+${target.feed === 'debian' ? `deb${target.distroVersion}u1` : 'ubuntu2'}.root.io.${n}`
    case 'pypi':
      return `${upstream}+root.io.${n}`
    case 'npm':
    case 'maven':
      return `${upstream}-root.io.${n}`
  }
}
