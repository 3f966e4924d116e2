/** The names of filters on the command line, by those of the contract. */
const FILTERS: Readonly<Record<string, string>> = {
  cve_id: 'cve',
  package_src_name: 'package',
  severities: 'severity',
  ticket_statuses: 'status',
}

/** Returns the name of the option for a parameter of the contract, without its hyphens. */
export function filterName(param: string): string {
  return FILTERS[param] ?? param.replaceAll('_', '-')
}
