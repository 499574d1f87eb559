"""MySQL and MariaDB, with PyMySQL."""

from connect.kits.sql.databases import Product
from connect.kits.sql.databases.mysql.dialect import MariadbDialect, MysqlDialect
from connect.kits.sql.databases.mysql.driver import PymysqlDriver
from connect.kits.sql.databases.mysql.writer import MariadbWriter, MysqlWriter

__all__ = ["MARIADB", "MYSQL"]

MYSQL = Product(PymysqlDriver("mysql+pymysql"), MysqlDialect, MysqlWriter)
MARIADB = Product(PymysqlDriver("mariadb+pymysql"), MariadbDialect, MariadbWriter)
